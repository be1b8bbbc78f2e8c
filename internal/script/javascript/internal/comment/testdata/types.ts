import { tool, type Json } from "toolsrv";

/** Where somebody lives. */
interface Address {
  /** The street with its number. */
  street: string;
  readonly country?: "DE" | "FR";
  code: string | null;
}

interface Customer {
  address: Address;
  id: number; tags: readonly string[]
  friends?: Address[];
}

type Size = 1 | 2 | 3
type Named = { name: string; nick?: Either | "none" | null }
export type Either =
  | { kind: "a"; value: number }
  | { kind: "b" };

/** Adds two numbers. */
export function add(a: number, b = 1, size?: Size, flags: { loud?: boolean } = {}): number {
  return a + b;
}

/** Bills a customer.
 * @param customer Who pays.
 * @param notes What to say. */
export async function bill(customer: Customer, notes: (string | string[])[], either: Either, named: Named): Promise<{ total: number; paid: boolean }> {
  return { total: 1, paid: true };
}

/** Takes one object.
 * @param text What to say. */
export const say = ({ text, times = 2, ...rest }: { text: string; times?: number; }): string[] => [text];

/** By name. */
export const move = ({ x, y }: Point): void => {};
interface Point { x: number; y: number }

export const greet = tool({
  description: "Greets.",
  run: async ({ name }: { name: string; /** How. */ style?: "a" | "b" }): Promise<string> => name,
});

export const method = tool({
  /** The function. */
  async run(args: Point) { return args.x; },
});

export const given = tool(({ a }: { a: string[] }) => a);

/** Casts: a < b, and regular expressions. */
export const less = (a: number, b: number): boolean => a < b && /[/"']/.test("x") && (a as number) > b;

let count: number
/** A line without a semicolon before it. */
export function after(a: Array<string>, f: number = ((x, y) => x)(1, 2), b = -1): a is string { return a; }

type Maybe = string | null;
/** Members that may be left out, and what a comment says of members that have a type.
 * @param {Object} options
 * @param {integer} options.size How large. */
export const maybe = tool({ run: (options: { size: number; name?: Maybe; ids?: (1 | "a" | null)[]; /** Its colour. */ colour: Maybe | null }) => options });
/** Text beside the parameters.
 * @param {integer} b
 * @param {Object} c
 * @param {string} [c.d='x'] */
export function beside(/** The first. */ a: string, b: number, c: { d: Maybe; e: boolean }): Promise<void> {}
