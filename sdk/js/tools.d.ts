/**
 * Calls another tool of the server, such as "units/convert", and returns its result. A Failure says why it has none: where the tool
 * itself said so, with the code "tool_error", and `toolCode` and `data` as the tool gave them.
 */
export function call(path: string, args?: object): Promise<any>;
