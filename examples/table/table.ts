// Makes tables of JSON: for a chat, a spreadsheet or a page.
import { module, tool, ToolError } from "toolsrv";
import { z } from "zod";

module({ namespace: "table", version: "1.0.0" });

const Format = z.enum(["markdown", "csv", "html", "text"]);
type Format = z.infer<typeof Format>;

/** A table: its first row has the names of the columns. */
type Table = { names: string[]; rows: string[][]; numeric: boolean[] };

export const convert = tool({
  title: "Make a table of JSON",
  description: "Makes a table of a list of JSON objects: Markdown, CSV, HTML or aligned text. Members of nested objects get columns of their own, such as address.city.",
  parameters: z.object({
    data: z.array(z.unknown().describe("An object, a list, or a single value.")).max(20_000).describe("The rows: objects, or lists, or single values."),
    format: Format.default("markdown").describe("What to make."),
    columns: z.array(z.string().max(200)).max(200).optional().describe("Which columns, in this order. Without it, all in the order in which they first appear."),
    sort: z.string().max(200).optional().describe("The column to sort by; with - before it from high to low."),
    limit: z.int().min(1).max(20_000).default(1000).describe("How many rows at most."),
  }),
  result: z.string(),
  annotations: { readOnly: true, openWorld: false },
  examples: [
    {
      arguments: { data: [{ name: "Ada", born: 1815 }, { name: "Grace", born: 1906, home: { city: "New York" } }] },
      result: "| name  | born | home.city |\n| ----- | ---: | --------- |\n| Ada   | 1815 |           |\n| Grace | 1906 | New York  |\n",
    },
    { arguments: { data: [{ a: 'say "hi"' }, { a: 2 }], format: "csv" }, result: 'a\r\n"say ""hi"""\r\n2\r\n' },
  ],
  run({ data, format, columns, sort, limit }) {
    const records = data.map((row) => flatten(row));
    const known = new Set(records.flatMap((record) => [...record.keys()]));
    const key = sort?.replace(/^-/, "");
    for (const name of [...(columns ?? []), ...(key === undefined ? [] : [key])]) {
      if (!known.has(name) && records.length > 0) {
        throw new ToolError(`There is no column ${JSON.stringify(name)}: there are ${[...known].slice(0, 50).join(", ")}.`, { code: "no_such_column" });
      }
    }
    const names = columns ?? [...known];
    if (names.length > 200) {
      throw new ToolError(`The rows have ${names.length} different members: name up to 200 columns.`, { code: "too_many_columns" });
    }
    if (key !== undefined) {
      const sign = key === sort ? 1 : -1;
      records.sort((a, b) => compare(a.get(key), b.get(key), sign));
    }
    const rows = records.slice(0, limit);
    return write[format]({
      names,
      rows: rows.map((row) => names.map((name) => shown(row.get(name)))),
      numeric: names.map((name) => rows.every((row) => row.get(name) === undefined || typeof row.get(name) === "number")),
    });
  },
});

/** Returns the members of a row by their names, those of nested objects with a dot. */
function flatten(row: unknown): Map<string, unknown> {
  const members = new Map<string, unknown>();
  const add = (name: string, value: unknown, depth: number) => {
    if (typeof value === "object" && value !== null && !Array.isArray(value) && depth < 5 && Object.keys(value).length > 0) {
      for (const [key, member] of Object.entries(value)) {
        add(name === "" ? key : `${name}.${key}`, member, depth + 1);
      }
    } else if (value !== null) {
      members.set(name === "" ? "value" : name, value);
    }
  };
  if (Array.isArray(row)) {
    row.forEach((value, i) => add(String(i + 1), value, 0));
  } else {
    add("", row, 0);
  }
  return members;
}

function shown(value: unknown): string {
  if (value === undefined) {
    return "";
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Numbers by size, before texts in the order of the alphabet; with the sign -1 the other way round. What is missing comes last. */
function compare(a: unknown, b: unknown, sign: number): number {
  if (a === undefined || b === undefined) {
    return Number(a === undefined) - Number(b === undefined);
  }
  if (typeof a === "number" && typeof b === "number") {
    return sign * (a - b);
  }
  if (typeof a === "number" || typeof b === "number") {
    return typeof a === "number" ? -sign : sign;
  }
  const [x, y] = [shown(a), shown(b)];
  return x < y ? -sign : x > y ? sign : 0;
}

/** How many columns of a terminal a text takes: two for each wide character, none for marks. */
function width(text: string): number {
  if (/^[ -~]*$/.test(text)) {
    return text.length;
  }
  let n = 0;
  for (const c of text) {
    n += /\p{M}|\u200d/u.test(c) ? 0 : /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(c) ? 2 : 1;
  }
  return n;
}

function padded(text: string, to: number, right: boolean): string {
  const space = " ".repeat(Math.max(0, to - width(text)));
  return right ? space + text : text + space;
}

function widths({ names, rows }: Table, least: number): number[] {
  return names.map((name, i) => rows.reduce((most, row) => Math.max(most, width(row[i])), Math.max(width(name), least)));
}

const write: Record<Format, (table: Table) => string> = {
  markdown({ names, rows, numeric }) {
    const escaped = (cell: string) => cell.replace(/[\\|]/g, "\\$&").replace(/\r?\n/g, "<br>");
    const table = { names: names.map(escaped), rows: rows.map((row) => row.map(escaped)), numeric };
    const sizes = widths(table, 3);
    const line = (cells: string[]) => `| ${cells.map((cell, i) => padded(cell, sizes[i], numeric[i])).join(" | ")} |\n`;
    const rule = sizes.map((size, i) => "-".repeat(numeric[i] ? size - 1 : size) + (numeric[i] ? ":" : ""));
    return line(table.names) + `| ${rule.join(" | ")} |\n` + table.rows.map(line).join("");
  },
  csv({ names, rows }) {
    // A spreadsheet would run a cell that begins with one of these as a formula; numbers may.
    const cell = (text: string) => {
      const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
      return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return [names, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
  },
  html({ names, rows, numeric }) {
    const escaped = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
    const cells = (tag: string, row: string[]) => row.map((cell, i) => `<${tag}${numeric[i] ? ' style="text-align:right"' : ""}>${escaped(cell)}</${tag}>`).join("");
    const body = rows.map((row) => `<tr>${cells("td", row)}</tr>\n`).join("");
    return `<table>\n<thead>\n<tr>${cells("th", names)}</tr>\n</thead>\n<tbody>\n${body}</tbody>\n</table>\n`;
  },
  text({ names, rows, numeric }) {
    const oneLine = (row: string[]) => row.map((cell) => cell.replace(/\s+/g, " "));
    const table = { names: oneLine(names), rows: rows.map(oneLine), numeric };
    const sizes = widths(table, 1);
    const line = (cells: string[]) => cells.map((cell, i) => padded(cell, sizes[i], numeric[i])).join("  ").trimEnd() + "\n";
    return line(table.names) + line(sizes.map((size) => "-".repeat(size))) + table.rows.map(line).join("");
  },
};
