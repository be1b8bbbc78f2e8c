// Defaults of a JSON Schema, which the server fills in before a tool is called.

// fill adds to arguments the members that are missing and have a default. A library's schema fills in its own.
export function fill(value, schema) {
  if (schema !== undefined && schema["~standard"] === undefined) {
    add(value, schema, schema, 0);
  }
}

function add(value, schema, root, depth) {
  if (typeof value !== "object" || value === null || typeof schema !== "object" || schema === null || depth > 50) {
    return;
  }
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#")) {
    const steps = schema.$ref.slice(1).split("/").slice(1);
    add(value, steps.reduce((s, step) => s?.[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")], root), root, depth + 1);
  }
  for (const part of schema.allOf ?? []) {
    add(value, part, root, depth + 1);
  }
  if (Array.isArray(value)) {
    for (const item of value) {
      add(item, schema.items, root, depth + 1);
    }
    return;
  }
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    if (!Object.hasOwn(value, name) && Object.hasOwn(member, "default")) {
      value[name] = structuredClone(member.default);
    }
  }
  for (const [name, member] of Object.entries(value)) {
    add(member, schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : schema.additionalProperties, root, depth + 1);
  }
}
