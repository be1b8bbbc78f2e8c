// The names under which scripts import what they were granted.
declare module "toolsrv:files" {
  export * from "toolsrv/files";
}
declare module "toolsrv:kv" {
  export * from "toolsrv/kv";
}
declare module "toolsrv:secrets" {
  export * from "toolsrv/secrets";
}
declare module "toolsrv:settings" {
  export * from "toolsrv/settings";
}
declare module "toolsrv:tools" {
  export * from "toolsrv/tools";
}
