import assert from "node:assert/strict";
import { test } from "node:test";
import { call, examples } from "toolsrv/testing";
import { render } from "./liquid.ts";

const defaults = { data: {}, escape: false, strict: true, partials: {} };

test("examples", () => examples(render));

for (const [name, template, want, options] of [
  ["a loop", "{% for i in (1..3) %}{{ i }}{% unless forloop.last %},{% endunless %}{% endfor %}", "1,2,3"],
  ["escaped", "{{ a }} {{ a | raw }}", "&lt;b&gt; <b>", { data: { a: "<b>" }, escape: true }],
  ["a partial", "{% render 'sign', name: 'Ada' %}", "Yours, Ada", { partials: { sign: "Yours, {{ name }}" } }],
  ["what is missing is empty", "a{{ b.c }}d", "ad", { strict: false }],
  ["members of JavaScript's own are none", "{{ a.constructor }}{{ a.__proto__ }}", "", { data: { a: {} }, strict: false }],
] as [string, string, string, object?][]) {
  test(name, async () => assert.equal(await call(render, { ...defaults, template, ...options }), want));
}

for (const [template, message] of [
  ["{{ nme }}", /undefined variable: nme, line:1, col:4/],
  ["a\n{% if %}", /line:2/],
  ["{{ 1 | nofilter }}", /undefined filter: nofilter/],
  ["{% render 'nowhere' %}", /nowhere/],
  ["{% include '/etc/passwd' %}", /ENOENT|not found|passwd/],
  ["{% for i in (1..100000000) %}x{% endfor %}", /limit/],
  ["{% assign a = 'aaaaaaaaaa' %}{% for i in (1..60) %}{% assign a = a | append: a %}{% endfor %}{{ a }}", /limit/],
] as [string, RegExp][]) {
  test(template, () => assert.rejects(call(render, { ...defaults, template }), { code: "template", message }));
}
