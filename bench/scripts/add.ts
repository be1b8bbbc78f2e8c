// The smallest tool, for what a call costs besides its work.
import { module, tool } from "toolsrv";

module({ namespace: "bench" });

export const add = tool({
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "integer" } },
    required: ["a", "b"],
    additionalProperties: false,
  },
  run: ({ a, b }) => a + b,
});
