// Makes calls as an older client and as one of 2026-07-28. The SDK holds each result to the outputSchema of its tool; this script
// holds it to the one that is expected. Its arguments are the server's address, and a file with a list of {name, arguments, result}.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

const [url, file] = process.argv.slice(2)
const calls = JSON.parse(await readFile(file, 'utf8'))
for (const mode of ['legacy', { pin: '2026-07-28' }]) {
  const client = new Client({ name: 'toolsrv-tests', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  await client.listTools() // from which the SDK has the schemas
  for (const call of calls) {
    const answer = await client.callTool({ name: call.name, arguments: call.arguments })
    assert(!answer.isError, `${call.name}: ${JSON.stringify(answer)}`)
    assert(answer.content.length > 0, `${call.name} has no content`)
    if (call.result !== undefined && answer.structuredContent !== undefined) {
      assert.deepEqual(answer.structuredContent, call.result, call.name)
    }
  }
  await client.close()
}
process.exit(0)
