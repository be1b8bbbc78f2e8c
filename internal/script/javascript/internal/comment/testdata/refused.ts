// What is not read, each with its sentence.
interface Base { name: string }
interface Extended extends Base { size: number }
interface Merged { a: string }
interface Merged { b: string }
type Generic<T> = { value: T };
type Joined = Base & { size: number };
type Keys = keyof Base;
type Mapped = { [K in "a" | "b"]: string };
type Later = Base
  ["name"];
interface Tree { children: Tree[] }
enum Level { Low, High }

/** Extends. */
export function extended(a: Extended) {}
/** Merged. */
export function merged(a: Merged) {}
/** Generic. */
export function generic(a: Generic<string>) {}
/** Joined. */
export function joined(a: Joined) {}
/** Keys. */
export function keys(a: Keys) {}
/** Mapped. */
export function mapped(a: Mapped) {}
/** Goes on in the next line. */
export function later(a: Later) {}
/** Holds itself. */
export function tree(a: Tree) {}
/** An enum. */
export function level(a: Level) {}
/** A type of a parameter. */
export function shadowed<Base>(a: Base): Base { return a; }
/** One member. */
export function member(a: Base["name"]) {}
/** Partial. */
export function partial(a: Partial<Base>) {}
/** Typeof. */
export function type(a: typeof extended) {}
/** Template. */
export function template(a: `a${string}`) {}
/** A map. */
export function keyed(a: Record<string, string>) {}
/** Index. */
export function index(a: { [key: string]: string }) {}
/** Method. */
export function method(a: { f(): void }) {}
/** Function. */
export function callback(a: () => void) {}
/** Two at once. */
export function apart(a: string, { b }: { b: string }) {}
/** List. */
export function list([a]: string[]) {}
/** Map. */
export function map(a: Map<string, number>): Map<string, number> { return a; }
/** Without a type. */
export function untyped(a: string, b = f(a)) {}
/** A member without a type. */
export function bare(a: { b; c: string }) {}
/** A name in quotes. */
export function quoted(a: { "post-code": string }) {}
/** What may be left out. */
export function absent(a?: string | undefined) {}
/** This. */
export function own(this: void, a: string) {}
/** Twice. */
export function twice(a: { b: string; b: number }) {}

/** Overloads. */
export function over(a: string): string;
export function over(a: any): any { return a; }

/** The result of this one is not read, and says nothing. */
export function result(): Base | keyof Base & Joined { return 1; }
