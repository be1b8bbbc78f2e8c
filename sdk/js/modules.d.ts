// The names under which scripts import what they were granted.
declare module "toolsrv:config" {
  export * from "toolsrv/config";
}
declare module "toolsrv:files" {
  export * from "toolsrv/files";
}
declare module "toolsrv:kv" {
  export * from "toolsrv/kv";
}
declare module "toolsrv:secret" {
  export * from "toolsrv/secret";
}
declare module "toolsrv:tools" {
  export * from "toolsrv/tools";
}
