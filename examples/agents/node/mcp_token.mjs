import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "example", version: "1.0.0" });
const headers = { Authorization: `Bearer ${process.env.TOOLSRV_TOKEN}` };
await client.connect(new StreamableHTTPClientTransport(new URL("http://localhost:8000/mcp"), { requestInit: { headers } }));
const result = await client.callTool({ name: "math-add", arguments: { a: "two", b: 3 } });
console.log(result.isError, result.content[0].text);
await client.close();
