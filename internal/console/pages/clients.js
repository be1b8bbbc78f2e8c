// Settings of clients of the Model Context Protocol, to be copied. The token is not in them: what is copied is easily pasted in the wrong place.

/** Returns what goes where, for the server's MCP address. @param {string} address @param {boolean} closed whether it takes a token */
export function clients(address, closed) {
  const headers = closed ? { headers: { Authorization: "Bearer YOUR-TOKEN" } } : {};
  const json = (/** @type {unknown} */ value) => JSON.stringify(value, null, 2);
  const token = closed ? " Put your token in place of YOUR-TOKEN." : "";
  return [
    {
      name: "Claude Code",
      how: "Run this in a terminal." + token,
      text: `claude mcp add --transport http tools ${address}` + (closed ? ' --header "Authorization: Bearer YOUR-TOKEN"' : ""),
    },
    {
      name: "Claude on the web, on a desktop or a phone",
      how:
        "In Settings, at Connectors, add a custom connector with this address. It is Anthropic's servers that connect, so they must be able to reach it." +
        (closed ? " They sign in at an issuer of OIDC that this server trusts, and have no place for a token: use Claude Code if there is none." : ""),
      text: address,
    },
    {
      name: "Cursor",
      how: "Put this into .cursor/mcp.json of a project, or ~/.cursor/mcp.json." + token,
      text: json({ mcpServers: { tools: { url: address, ...headers } } }),
    },
    {
      name: "VS Code",
      how: "Put this into .vscode/mcp.json of a project." + token,
      text: json({ servers: { tools: { type: "http", url: address, ...headers } } }),
    },
    {
      name: "Others",
      how: "Most clients take a file such as this one." + token,
      text: json({ mcpServers: { tools: { type: "http", url: address, ...headers } } }),
    },
  ];
}
