// Package toolsrv makes tools of JavaScript and TypeScript functions, for the server of the same name. index.d.ts says what each of
// these is.
export { tool, module } from "./tool.js";
export { Failure, ToolError } from "./error.js";
export { log, progress, timeLeft } from "./call.js";
