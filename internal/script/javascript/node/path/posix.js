// node:path/posix: see node:path.
export * from "node:path";
export { default } from "node:path";
