// Makes the table of contents of a Markdown text, with the links that GitHub gives its headings.
import GithubSlugger from "github-slugger";
import { marked } from "marked";
import { module, tool, ToolError } from "toolsrv";

module({ namespace: "toc", version: "1.0.0" });

const BEGIN = "<!-- toc -->";
const END = "<!-- tocstop -->";

/**
 * Makes a table of contents of the headings of a Markdown text, as a list with links that work on GitHub.
 *
 * @param {string} text The Markdown. Headings within code are none.
 * @param {number} [from=2] The level of heading to begin with: 1 is the title.
 * @param {number} [to=3] The level of heading to end with.
 * @returns {string} The list, in Markdown.
 */
export const list = tool({
  title: "Make a table of contents",
  annotations: { readOnly: true, openWorld: false },
  examples: [
    {
      arguments: { text: "# Tea\n\n## Kinds of tea\n\n### Green\n\n## How to `brew`\n" },
      result: "- [Kinds of tea](#kinds-of-tea)\n  - [Green](#green)\n- [How to `brew`](#how-to-brew)\n",
    },
  ],
  run: ({ text, from = 2, to = 3 }) => contents(text, from, to),
});

/**
 * Writes the table of contents into a Markdown text, between the comments `<!-- toc -->` and `<!-- tocstop -->`, or after the first one.
 * What stood between them is replaced, so it can be called again after each change.
 *
 * @param {string} text The Markdown, with the comments.
 * @param {number} [from=2] The level of heading to begin with: 1 is the title.
 * @param {number} [to=3] The level of heading to end with.
 * @returns {string} The whole text, with its table of contents.
 */
export const insert = tool({
  title: "Write a table of contents into a text",
  annotations: { readOnly: true, openWorld: false },
  examples: [
    {
      arguments: { text: "<!-- toc -->\n\n## One\n" },
      result: "<!-- toc -->\n\n- [One](#one)\n\n<!-- tocstop -->\n\n## One\n",
    },
  ],
  run({ text, from = 2, to = 3 }) {
    const begin = text.indexOf(BEGIN);
    if (begin < 0) {
      throw new ToolError(`The text does not say where: put ${BEGIN} on a line of its own.`, { code: "no_place" });
    }
    const end = text.indexOf(END, begin);
    const before = text.slice(0, begin + BEGIN.length);
    const after = end < 0 ? text.slice(begin + BEGIN.length) : text.slice(end + END.length);
    return `${before}\n\n${contents(before + after, from, to)}\n${END}${after}`;
  },
});

function contents(text, from, to) {
  if (!Number.isInteger(from) || !Number.isInteger(to) || from < 1 || to > 6 || from > to) {
    throw new ToolError("Levels are whole numbers from 1 to 6, from is not above to.", { code: "no_such_level" });
  }
  const slugger = new GithubSlugger();
  const lines = [];
  let depths = []; // of the headings that this one stands below
  for (const heading of headings(marked.lexer(text))) {
    const link = slugger.slug(plain(heading.tokens)); // of those that are not listed, too: they count for the names of others
    if (heading.depth < from || heading.depth > to) {
      continue;
    }
    depths = depths.filter((depth) => depth < heading.depth);
    lines.push(`${"  ".repeat(depths.length)}- [${inline(heading.tokens)}](#${link})\n`);
    depths.push(heading.depth);
  }
  return lines.join("");
}

// headings returns the headings among tokens, those in quotes and lists, too.
function headings(tokens) {
  return tokens.flatMap((token) => {
    if (token.type === "heading") {
      return [token];
    }
    return headings(token.type === "list" ? token.items : token.type === "blockquote" || token.type === "list_item" ? token.tokens : []);
  });
}

// plain returns the text of a heading.
function plain(tokens) {
  return tokens.map((token) => (token.type === "html" || token.type === "image" ? "" : token.tokens ? plain(token.tokens) : unescaped(token.text ?? token.raw))).join("");
}

// inline returns a heading as the text of a link: without links of its own.
function inline(tokens) {
  return tokens
    .map((token) => {
      switch (token.type) {
        case "link":
          return inline(token.tokens);
        case "image":
        case "html":
          return "";
        case "strong":
          return `**${inline(token.tokens)}**`;
        case "em":
          return `*${inline(token.tokens)}*`;
        default:
          return token.raw;
      }
    })
    .join("");
}

function unescaped(text) {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ({ amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" })[name]);
}
