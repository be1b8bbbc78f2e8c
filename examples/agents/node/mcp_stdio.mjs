import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: "toolsrv", args: ["mcp", "tools"] }));
const result = await client.callTool({ name: "math-add", arguments: { a: 2, b: 3 } });
console.log(result.content[0].text);
await client.close();
