/** Returns the operator's settings, which the schema of the script's needs describes. */
export function read(): any;

/**
 * Makes something of the settings while the tool starts, so that calls need not; `get` returns it in a call. Use it at the top of the script:
 *
 *     const prices = settings.load(({ prices }) => new Map(prices));
 */
export function load<T = any>(make?: (settings: any) => T): { get(): T };
