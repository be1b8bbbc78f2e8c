// Schemas of authors and of libraries.
import { test } from "node:test";
import assert from "node:assert/strict";
import * as v from "valibot";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as z from "zod";
import { tool } from "toolsrv";
import { call } from "toolsrv/testing";
import { jsonSchema } from "../schema.js";

const person = {
  type: "object",
  properties: { name: { type: "string", minLength: 1 }, age: { type: ["number", "null"] } },
  required: ["name"],
  additionalProperties: false,
};

test("a JSON Schema is served as it is written", () => {
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { a: { type: "integer", maximum: Number.MAX_SAFE_INTEGER } } };
  assert.deepEqual(jsonSchema(schema, "input"), schema);
  assert.deepEqual(jsonSchema({}, "input"), {});
});

test("zod", async () => {
  const schema = z.object({ name: z.string().min(1), age: z.number().nullish() });
  assert.deepEqual(jsonSchema(schema, "input"), person);
  const greet = tool({ description: "D.", parameters: schema.extend({ at: z.string().transform((text) => new Date(text)) }), run: ({ name, at }) => `${name} ${at.getUTCFullYear()}` });
  assert.equal(await call(greet, { name: "Ada", at: "2001-01-01T00:00:00Z" }), "Ada 2001");
  await assert.rejects(call(greet, { name: "", at: 1 }), (error) => {
    assert.equal(error.code, "invalid_arguments");
    assert.match(error.message, /^name: Too small.*; at: Invalid input/);
    return true;
  });
  const slow = tool({ description: "D.", parameters: schema.refine(async ({ name }) => name !== "Bob", { message: "no Bob" }), run: ({ name }) => name });
  assert.equal(await call(slow, { name: "Ada" }), "Ada");
  await assert.rejects(call(slow, { name: "Bob" }), /^ToolError: no Bob$/);
});

test("what zod says in its own way", () => {
  for (const [schema, want] of [
    [z.object({ a: z.looseObject({}) }), { type: "object", properties: { a: { type: "object", properties: {} } }, required: ["a"], additionalProperties: false }],
    [z.object({ a: z.int() }).catchall(z.string()), { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: { type: "string" } }],
    [{ "~standard": { jsonSchema: { input: () => ({ allOf: [{ properties: { a: {} } }, { properties: { b: { properties: {} } } }] }) } } }, { allOf: [{ properties: { a: {} } }, { properties: { b: { properties: {}, additionalProperties: false } } }] }],
    [z.object({ a: z.union([z.string(), z.int()]) }), { type: "object", properties: { a: { anyOf: [{ type: "string" }, { type: "integer" }] } }, required: ["a"], additionalProperties: false }],
    [z.object({ a: z.iso.datetime(), b: z.uuid(), c: z.ipv4() }), { type: "object", properties: { a: { type: "string", format: "date-time" }, b: { type: "string", format: "uuid" }, c: { type: "string", format: "ipv4" } }, required: ["a", "b", "c"], additionalProperties: false }],
    [z.object({ a: z.string().regex(/^(?!x)a/) }), { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false }],
    [z.object({ pattern: z.string(), type: z.literal("a"), items: z.int(), $ref: z.null() }), { type: "object", properties: { pattern: { type: "string" }, type: { type: "string", const: "a" }, items: { type: "integer" }, $ref: { type: "null" } }, required: ["pattern", "type", "items", "$ref"], additionalProperties: false }],
    [z.object({ a: z.tuple([z.string(), z.int()]) }), { type: "object", properties: { a: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], items: false, minItems: 2, maxItems: 2 } }, required: ["a"], additionalProperties: false }],
  ]) {
    assert.deepEqual(jsonSchema(schema, "input"), want);
  }
});

test("other libraries", async () => {
  const valibot = toStandardJsonSchema(v.object({ name: v.pipe(v.string(), v.minLength(1)), age: v.optional(v.nullable(v.number())) }));
  const ark = type({ name: "string >= 1", "age?": "number | null" });
  for (const parameters of [valibot, ark]) {
    assert.deepEqual(sorted(jsonSchema(parameters, "input")), sorted(person), parameters["~standard"].vendor);
    const greet = tool({ description: "D.", parameters, run: ({ name }) => name });
    assert.equal(await call(greet, { name: "Ada" }), "Ada");
    await assert.rejects(call(greet, {}), /^ToolError: name/);
  }
});

// sorted returns a schema with the parts of unions in one order.
function sorted(schema) {
  const text = JSON.stringify(schema, (key, value) => (key === "anyOf" ? value.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))) : value));
  const age = JSON.parse(text);
  const { anyOf } = age.properties.age;
  if (anyOf) {
    age.properties.age = { type: anyOf.map((s) => s.type).sort().reverse() };
  }
  if (Array.isArray(age.properties.age.type)) {
    age.properties.age.type.sort();
  }
  return age;
}

test("schemas that are wrong", () => {
  for (const [schema, wanted] of [
    [z.object({ at: z.date() }), /^parameters: zod can't say this schema as JSON Schema: Date cannot be represented in JSON Schema: take a text and convert it/],
    [z.object({ n: z.bigint() }), /take a type that JSON has$/],
    [{ name: z.string() }, /^parameters: "name" is a schema within a plain object: wrap the object, as in z.object\(\{ name: … \}\)$/],
    [{ name: { type: "string" } }, /is not the JSON Schema of an object: write \{ type: "object", properties/],
    [v.object({}), /^parameters: this version of valibot doesn't say its schemas as JSON Schema: wrap it: toStandardJsonSchema/],
    [{ "~standard": { vendor: "other", validate() {} } }, /this version of other .*: pass a JSON Schema, or a schema that implements Standard JSON Schema/],
    [{ safeParse() {}, "~standard": { vendor: "zod" } }, /update it with npm install zod@latest: from 4.2 on it can$/],
    [{ type: "object", default: 1n }, /this is not a JSON Schema: /],
  ]) {
    assert.throws(() => jsonSchema(schema, "input"), (error) => wanted.test(error.message) || assert.fail(error.message));
  }
});
