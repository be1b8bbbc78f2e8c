// Tries a running server with the TypeScript SDK, and writes one line of JSON for each check: {"check": …} where it
// holds, and {"check": …, "error": …} where it doesn't. Its argument is JSON:
//
//   {"sdk": "v1" | "v2", "era": "legacy" | "auto" | a version, "url": …, "token": …}     over HTTP
//   {"sdk": …, "era": …, "command": [program, argument…]}                                over stdio
//   "servers": how many there are behind a balancer, if it is not one
//   "from": a file of tools, "to": where it is put while the client is connected, "appears": a tool in it
import assert from 'node:assert/strict'
import { copyFile, rename } from 'node:fs/promises'

const options = JSON.parse(process.argv[2])
const seconds = 20 // until a check that hangs has failed
const servers = options.servers ?? 1 // behind a balancer

const sdk = options.sdk === 'v1' ? await v1() : await v2()
let changed = () => {}
const client = newClient({ listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => changed() } } })

const checks = {
  async list() {
    const { tools } = await client.listTools()
    const names = tools.map(t => t.name)
    assert.deepEqual(names, [...names].sort(), 'names are not sorted')
    assert(names.includes('test_simple_text'), `got ${names}`)
    assert(!names.includes('test_logging_tool'), 'a disabled tool is in the list')
    for (const tool of tools) {
      assert.match(tool.name, /^[a-zA-Z0-9_-]{1,64}$/)
      assert(tool.description, `${tool.name} has no description`)
      assert.equal(tool.inputSchema.type, 'object', `${tool.name}: inputSchema`)
    }
  },
  async call() {
    const result = await sdk.call('test_simple_text', {})
    assert(!result.isError)
    assert.equal(result.content[0].type, 'text')
    assert.match(result.content[0].text, /simple text response/)
  },
  async structured() {
    const result = await sdk.call('test_custom_header', { region: 'west', count: 3 })
    assert.deepEqual(result.structuredContent, { region: 'west', count: 3 })
    assert.deepEqual(JSON.parse(result.content[0].text), { region: 'west', count: 3 })
  },
  async wrongArguments() {
    const result = await sdk.call('test_custom_header', { region: 5, more: true })
    assert.equal(result.isError, true)
    const text = result.content[0].text
    assert.match(text, /region/)
    assert.match(text, /string/)
    assert.match(text, /more/)
    assert.equal(codeOf(result), 'invalid_arguments')
  },
  async toolError() {
    const result = await sdk.call('test_error_handling', {})
    assert.equal(result.isError, true)
    assert.match(result.content[0].text, /intentionally returns an error/)
    assert.equal(codeOf(result), 'tool_error')
  },
  async unknownTool() {
    await assert.rejects(sdk.call('no_such_tool', {}), error => {
      assert.equal(error.code, -32602)
      return true
    })
  },
  async disabledTool() {
    const result = await sdk.call('test_logging_tool', {})
    assert.equal(result.isError, true)
    assert.match(result.content[0].text, /being repaired/)
    assert.equal(codeOf(result), 'tool_disabled')
  },
  async image() {
    const result = await sdk.call('test_image_content', {})
    const image = result.content.find(block => block.type === 'image')
    assert.equal(image.mimeType, 'image/png')
    assert.deepEqual([...Buffer.from(image.data, 'base64').subarray(1, 4)], [0x50, 0x4e, 0x47])
    for (const block of result.content) assert(!block.text?.includes(image.data), 'the bytes are repeated as text')
  },
  async audio() {
    const result = await sdk.call('test_audio_content', {})
    const audio = result.content.find(block => block.type === 'audio')
    assert.equal(audio.mimeType, 'audio/wav')
    assert.equal(Buffer.from(audio.data, 'base64').subarray(0, 4).toString(), 'RIFF')
  },
  async mixed() {
    const result = await sdk.call('test_multiple_content_types', {})
    assert.deepEqual(result.content.map(block => block.type).sort(), ['image', 'resource', 'text'])
    const { resource } = result.content.find(block => block.type === 'resource')
    assert.equal(resource.mimeType, 'application/json')
    assert.equal(resource.text ?? Buffer.from(resource.blob, 'base64').toString(), '{"test":"data","value":123}')
  },
  async progress() {
    const seen = []
    await sdk.call('test_tool_with_progress', {}, { onprogress: p => seen.push(p) })
    assert.deepEqual(seen.map(p => [p.progress, p.total]), [[0, 100], [50, 100], [100, 100]])
  },
  // test_spin computes for ever, and only one call of it may run on a server: that others begin shows that the first ones have ended.
  async cancellation() {
    const occupy = async () => {
      const all = []
      for (const until = Date.now() + 2000; all.length < servers; ) {
        const next = spin()
        const outcome = await next.outcome
        if (outcome === 'Waiting') {
          all.push(next)
          continue
        }
        await next.cancel()
        assert(Date.now() < until, `the guest still runs: ${JSON.stringify(outcome)}`)
      }
      return all
    }
    for (let i = 0; i < 2; i++) {
      const all = await occupy()
      const more = await sdk.call('test_spin', {})
      assert.equal(codeOf(more), 'overloaded')
      await Promise.all(all.map(one => one.cancel()))
    }
  },
  async changes() {
    const told = Promise.withResolvers()
    changed = told.resolve
    await copyFile(options.from, options.to + '.tmp')
    await rename(options.to + '.tmp', options.to)
    await told.promise
    const list = async () => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools.map(t => t.name)
    if (servers > 1) { // each finds the file itself
      for (let whole = 0; whole < 2 * servers; ) whole = (await list()).includes(options.appears) ? whole + 1 : 0
    }
    const names = await list()
    assert(names.includes(options.appears), `${options.appears} is not in ${names}`)
    assert(!(await sdk.call(options.appears, { a: 2, b: 3 })).isError)
  },
}

if (options.url) {
  checks.namespace = async () => {
    const part = newClient()
    await part.connect(overHTTP('/mcp/math', options.token))
    const { tools } = await part.listTools()
    assert.deepEqual(tools.map(t => t.name), ['math-add', 'math-divide'])
    await part.close()
  }
  checks.unauthorized = async () => {
    const stranger = newClient()
    await assert.rejects(stranger.connect(overHTTP('/mcp', 'another-token')), error => {
      assert.match(`${error.status} ${error.code} ${error.message}`, /401/)
      return true
    })
  }
}

function newClient(more) {
  const mode = /^\d/.test(options.era) ? { pin: options.era } : options.era // v1 knows the older versions only
  return new sdk.Client({ name: 'toolsrv-tests', version: '1' }, { versionNegotiation: { mode }, ...more })
}

const overHTTP = (path, token) =>
  new sdk.StreamableHTTPClientTransport(new URL(path, options.url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })

// codeOf returns the code of a call that failed.
const codeOf = result => result._meta['io.github.toolsrv/error'].code

// spin calls test_spin. The outcome is the message of its first progress, or how the call ended before.
function spin() {
  const abort = new AbortController()
  const begun = Promise.withResolvers()
  const call = sdk.call('test_spin', {}, { signal: abort.signal, onprogress: p => begun.resolve(p.message) })
  const end = call.catch(error => error)
  return { outcome: Promise.race([begun.promise, end]), cancel: () => (abort.abort(), end) }
}

async function v1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
  const call = (name, args, request) => client.callTool({ name, arguments: args }, undefined, request)
  return { Client, StreamableHTTPClientTransport, StdioClientTransport, call }
}

async function v2() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  const call = (name, args, request) => client.callTool({ name, arguments: args }, request)
  return { Client, StreamableHTTPClientTransport, StdioClientTransport, call }
}

async function attempt(check, work) {
  let timer
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`nothing after ${seconds} s`)), seconds * 1000) })
  try {
    await Promise.race([work(), late])
    console.log(JSON.stringify({ check }))
    return true
  } catch (error) {
    console.log(JSON.stringify({ check, error: error?.stack ?? String(error) }))
    return false
  } finally {
    clearTimeout(timer)
  }
}

const transport = options.url
  ? overHTTP('/mcp', options.token)
  : new sdk.StdioClientTransport({ command: options.command[0], args: options.command.slice(1), env: process.env, stderr: 'inherit' })
if (await attempt('connect', () => client.connect(transport))) {
  for (const [name, check] of Object.entries(checks)) await attempt(name, check)
  await attempt('close', () => client.close())
}
process.exit(0)
