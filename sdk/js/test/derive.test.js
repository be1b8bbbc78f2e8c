// Equal types have equal schemas in every language: those of zod beside those of Go, Rust and Python (testdata/derive).
import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import * as z from "zod";
import { tool } from "toolsrv";
import { call } from "toolsrv/testing";
import { jsonSchema } from "../schema.js";

const Point = z.object({ x: z.number(), y: z.number() }).meta({ id: "Point" });
const Words = z.array(z.string()).meta({ id: "Words" });
const Table = z.record(z.string(), z.int()).meta({ id: "Table" });
const Address = z.object({ street: z.string(), country: z.string().default("DE") }).meta({ id: "Address" });
const Part = z.object({ code: z.string() }).meta({ id: "Part" });
const Item = z.object({ name: z.string(), price: z.number(), parts: z.array(Part).default([]) }).meta({ id: "Item" });
const Tree = z.object({ name: z.string(), get children() { return z.array(Tree).default([]); } }).meta({ id: "Tree" });
const Level = z.enum(["debug", "info", "warn"]);
const said = (schema) => schema.describe("What it is.");
const png = (schema) => schema.meta({ contentMediaType: "image/png" });

const withDefaults = z.object({
  text: z.string().default("world"), empty: z.string().default(""), whole: z.int().default(-3), ratio: z.number().default(0.5),
  flag: z.boolean().default(true), list: z.array(z.string()).default(["a", "b"]),
});

// types has for each file the arguments and the result, or one schema that is both. A member that may be left out of arguments, and is there as null
// in results, is two in zod.
const types = {
  scalars: z.object({
    text: z.string(), flag: z.boolean(), whole: z.int(), count: z.int().min(0),
    i8: z.int().min(-128).max(127), i16: z.int().min(-32768).max(32767), i32: z.int32(),
    u8: z.int().min(0).max(255), u16: z.int().min(0).max(65535), u32: z.uint32(), f32: z.number(), f64: z.number(),
  }),
  optional: [
    z.object({ text: z.string().nullish(), whole: z.int().min(1).max(9).nullish(), texts: z.array(z.string()).default([]), point: Point.optional() }),
    z.object({ text: z.string().nullable(), whole: z.int().min(1).max(9).nullable(), texts: z.array(z.string()).default([]), point: Point.nullable() }),
  ],
  lists: z.object({ texts: z.array(z.string()), matrix: z.array(z.array(z.number())), pair: z.array(z.int()).length(2), points: z.array(Point), gaps: z.array(z.int().nullable()) }),
  maps: z.object({ counts: z.record(z.string(), z.int()), points: z.record(z.string(), Point), lists: z.record(z.string(), z.array(z.string())) }),
  nested: z.object({ customer: z.string(), ship: Address, bill: Address, items: z.array(Item) }),
  recursive: Tree,
  defaults: [withDefaults.extend({ unset: z.string().optional() }), withDefaults.extend({ unset: z.string() })],
  bounds: z.object({
    percent: z.int().min(0).max(100), positive: z.number().positive(), below: z.number().lt(1.5), name: z.string().min(1).max(5),
    code: z.string().regex(/^[A-Z]{2}-\d+$/), mail: z.email(), link: z.url(), words: z.array(z.string()).min(1).max(3),
  }),
  choices: z.object({ level: Level, size: z.literal([1, 2, 3]), order: z.enum(["asc", "desc"]).default("asc") }),
  described: [
    z.object({
      city: z.string().meta({ description: "Where to look: a city's name, in any language.", examples: ["Paris", "Rome"] }),
      days: z.int().default(7).meta({ description: "How many days.", examples: [1, 14] }),
      point: Point.describe("Its place on the map."),
      extra: z.string().nullish().describe('Whatever "else" <there> is.'),
    }),
    z.object({
      city: z.string().meta({ description: "Where to look: a city's name, in any language.", examples: ["Paris", "Rome"] }),
      days: z.int().default(7).meta({ description: "How many days.", examples: [1, 14] }),
      point: Point.describe("Its place on the map."),
      extra: z.string().nullable().describe('Whatever "else" <there> is.'),
    }),
  ],
  members: z.object({
    point: Point, point_said: said(Point), points: z.array(Point), points_said: said(z.array(Point)), by_name: z.record(z.string(), Point), by_name_said: said(z.record(z.string(), Point)),
    level: Level, level_said: said(Level), words: Words, words_said: said(Words), table: Table, table_said: said(Table),
  }),
  maybes: [
    z.object({
      point: Point.optional(), point_said: said(Point).optional(), points: z.array(Point).nullish(), points_said: said(z.array(Point).nullish()),
      by_name: z.record(z.string(), Point).nullish(), by_name_said: said(z.record(z.string(), Point).nullish()),
      level: Level.nullish(), level_said: said(Level.nullish()), words: Words.optional(), words_said: said(Words).optional(), table: Table.optional(), table_said: said(Table).optional(),
    }),
    z.object({
      point: Point.nullable(), point_said: said(Point.nullable()), points: z.array(Point).nullable(), points_said: said(z.array(Point).nullable()),
      by_name: z.record(z.string(), Point).nullable(), by_name_said: said(z.record(z.string(), Point).nullable()),
      level: Level.nullable(), level_said: said(Level.nullable()), words: Words.nullable(), words_said: said(Words.nullable()), table: Table.nullable(), table_said: said(Table.nullable()),
    }),
  ],
  renamed: z.object({ firstName: z.string(), type: z.string(), "with-dash": z.int() }),
  anything: [
    z.object({ value: z.unknown(), list: z.array(z.unknown()), map: z.record(z.string(), z.unknown()), maybe: z.unknown().optional() }),
    z.object({ value: z.unknown(), list: z.array(z.unknown()), map: z.record(z.string(), z.unknown()), maybe: z.unknown() }),
  ],
  embedded: z.object({ page: z.int().min(1).default(1), limit: z.int().max(100).default(20), after: z.string().optional(), query: z.string() }),
  media: [
    z.object({
      picture: png(z.base64()), said: png(said(z.base64())), recording: z.base64().meta({ contentMediaType: "audio/wav" }),
      page: z.string().meta({ contentMediaType: "text/html" }), maybe: png(z.base64()).nullish(), data: z.base64(),
    }),
    z.object({
      picture: png(z.base64()), said: png(said(z.base64())), recording: z.base64().meta({ contentMediaType: "audio/wav" }),
      page: z.string().meta({ contentMediaType: "text/html" }), maybe: png(z.base64()).nullable(), data: z.base64(),
    }),
  ],
  number: [undefined, z.number()],
  list: [undefined, z.array(Point)],
  map: [undefined, z.record(z.string(), z.int())],
  maybe: [undefined, z.array(Point.nullable())],
  picture: [undefined, png(z.base64())],
};

const folder = new URL("../../../testdata/derive/", import.meta.url);

for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  const name = file.slice(0, -".json".length);
  const golden = JSON.parse(readFileSync(new URL(file, folder), "utf8"));
  test(name, { skip: !golden.languages.includes("typescript") && "there is no such type in TypeScript" }, async () => {
    assert.ok(types[name], "this test has no type for it");
    const [input, output] = [types[name]].flat().length === 2 ? types[name] : [types[name], types[name]];
    assert.deepEqual(jsonSchema(output, "output"), golden.result.schema);
    if (golden.arguments === undefined) {
      return;
    }
    assert.deepEqual(jsonSchema(input, "input"), golden.arguments.schema);
    const takes = tool({ description: "T.", parameters: input, run: () => 0 });
    for (const args of golden.arguments.accepted) {
      const large = Object.values(args).some((v) => Number.isInteger(v) && !Number.isSafeInteger(v) && Math.abs(v) < 2 ** 64);
      if (large) { // JavaScript would take another number for it
        await assert.rejects(call(takes, args), { code: "invalid_arguments" });
      } else {
        await call(takes, args);
      }
    }
  });
}

test("each type has a file that names TypeScript", () => {
  for (const name of Object.keys(types)) {
    assert.ok(JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")).languages.includes("typescript"), name);
  }
});
