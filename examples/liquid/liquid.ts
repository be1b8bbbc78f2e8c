// Fills in templates in Liquid, the language of Shopify and Jekyll.
import { Liquid, type LiquidErrors } from "liquidjs";
import { module, tool, ToolError } from "toolsrv";

module({ namespace: "liquid", version: "1.0.0" });

export const render = tool({
  title: "Fill in a Liquid template",
  description: "Fills in a template in Liquid: {{ name | upcase }}, {% for item in items %}, {% if %}, {% assign %}. Use it for mails, reports and other texts of a fixed form.",
  parameters: {
    type: "object",
    properties: {
      template: { type: "string", maxLength: 200_000, description: "The template." },
      data: { type: "object", default: {}, description: "What the template names." },
      escape: { type: "boolean", default: false, description: "Whether values are escaped as HTML; `| raw` leaves one as it is." },
      strict: { type: "boolean", default: true, description: "Whether a name that the data do not have is an error. Otherwise it is empty." },
      partials: { type: "object", additionalProperties: { type: "string" }, default: {}, description: "Templates that {% render 'name' %} puts in." },
    },
    required: ["template"],
    additionalProperties: false,
  },
  result: { type: "string" },
  annotations: { readOnly: true, openWorld: false },
  examples: [
    {
      arguments: {
        template: "Dear {{ name }},\n{% for item in items -%}\n- {{ item.count }} × {{ item.what }}\n{% endfor %}",
        data: { name: "Ada", items: [{ count: 2, what: "cards" }, { count: 1, what: "engine" }] },
      },
      result: "Dear Ada,\n- 2 × cards\n- 1 × engine\n",
    },
    { arguments: { template: "{{ price | times: 1.19 | round: 2 }} {{ 'a b' | url_encode }}", data: { price: 10 } }, result: "11.9 a+b" },
  ],
  async run({ template, data, escape, strict, partials }) {
    const liquid = new Liquid({
      templates: partials,
      outputEscape: escape ? "escape" : undefined,
      strictVariables: strict,
      strictFilters: true,
      // A template is somebody else's: these end with a sentence what the sandbox would end without one.
      parseLimit: 1_000_000,
      renderLimit: 3_000,
      memoryLimit: 10_000_000,
    });
    try {
      return await liquid.parseAndRender(template, data);
    } catch (error) {
      throw new ToolError(sentence(error as LiquidErrors), { code: "template", cause: error });
    }
  },
});

/** Returns what is wrong with a template, and where, without the page of context that follows. */
function sentence(error: LiquidErrors): string {
  const [first] = String(error.message).split("\n");
  return first.slice(0, 1000);
}
