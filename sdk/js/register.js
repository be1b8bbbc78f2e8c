// For tests that run in Node: node --import toolsrv/register --test. It has Node find the modules whose names begin with toolsrv:.
import * as node from "node:module";

const resolve = (specifier, context, next) => next(specifier.replace(/^toolsrv:/, "toolsrv/"), context);

if (node.registerHooks !== undefined) {
  node.registerHooks({ resolve });
} else {
  node.register(`data:text/javascript,export const resolve = ${encodeURIComponent(resolve)}`);
}
