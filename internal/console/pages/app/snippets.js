// The same call from elsewhere, to be copied. The token is never in it: each takes it from where its user keeps it.

import { messageOf } from "./call.js";

const variable = "TOOLSRV_TOKEN";
const longest = 4000; // characters of arguments in a command

/** Writes what only ASCII shows as it is: an invisible character in a command that is pasted could say something else. @param {string} json */
const ascii = (json) => json.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

/** @param {string} text */
const shell = (text) => "'" + text.replaceAll("'", `'\\''`) + "'";

/**
 * A snippet with a file reads that from the folder where it is run: its arguments are too long for a command.
 * @typedef {{name: string, text: string, file?: {name: string, text: string}}} Snippet
 *
 * @param {{path: string, operation_id: string}} tool
 * @param {string} args a JSON object
 * @param {string} origin
 * @param {boolean} token whether the server wants one
 * @param {boolean} mcp whether it speaks MCP
 * @returns {Snippet[]}
 */
export function snippetsOf(tool, args, origin, token, mcp) {
  const json = ascii(args);
  const long = json.length > longest;
  const url = origin + tool.path;
  const file = long ? { name: "arguments.json", text: json } : undefined;
  const curlToken = token ? ` \\\n  -H "Authorization: Bearer $${variable}"` : "";
  const message = ascii(messageOf(tool, args));
  const python = long ? `open("arguments.json", "rb").read()` : `json.dumps(arguments).encode()`;
  return [
    {
      name: "curl",
      file,
      text: `curl -s ${shell(url)}${curlToken} \\\n  -H 'Content-Type: application/json' \\\n  ${long ? "--data-binary @arguments.json" : "-d " + shell(json)}`,
    },
    {
      name: "Python",
      file,
      text: [
        `import ${[...(long ? [] : ["json"]), ...(token ? ["os"] : []), "urllib.error", "urllib.request"].join(", ")}`,
        ``,
        ...(long ? [] : [`arguments = json.loads(${JSON.stringify(json)})`]),
        `request = urllib.request.Request(`,
        `    ${JSON.stringify(url)},`,
        `    data=${python},`,
        `    headers={`,
        `        "Content-Type": "application/json",`,
        ...(token ? [`        "Authorization": "Bearer " + os.environ["${variable}"],`] : []),
        `    },`,
        `)`,
        `try:`,
        `    answer = urllib.request.urlopen(request)`,
        `except urllib.error.HTTPError as error:`,
        `    answer = error  # its body says what is wrong`,
        `print(answer.read().decode())`,
      ].join("\n"),
    },
    {
      name: "JavaScript",
      file,
      text: [
        ...(long ? [`import { readFile } from "node:fs/promises";`, ``] : []),
        `const answer = await fetch(${JSON.stringify(url)}, {`,
        `  method: "POST",`,
        `  headers: {`,
        `    "Content-Type": "application/json",`,
        ...(token ? ["    Authorization: `Bearer ${process.env." + variable + "}`,"] : []),
        `  },`,
        `  body: ${long ? `await readFile("arguments.json")` : JSON.stringify(json)},`,
        `});`,
        `console.log(await answer.text());`,
      ].join("\n"),
    },
    ...(mcp ? [{
      name: "MCP",
      file: long ? { name: "message.json", text: message } : undefined,
      text: `curl -s ${shell(origin + "/mcp")}${curlToken} \\\n  -H 'Content-Type: application/json' -H 'Mcp-Protocol-Version: 2026-07-28' \\\n  -H 'Mcp-Method: tools/call' -H ${shell("Mcp-Name: " + tool.operation_id)} \\\n  ${long ? "--data-binary @message.json" : "-d " + shell(message)}`,
    }] : []),
  ];
}
