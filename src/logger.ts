/** pino-shaped: an object of fields first, then a message. The default writes to the console. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const consoleLogger: Logger = {
  info: (fields, message) => console.info(message, fields),
  warn: (fields, message) => console.warn(message, fields),
  error: (fields, message) => console.error(message, fields),
}

/**
 * What may be said of an unknown error in a log: its kind and where it happened. Never its message: database drivers
 * put bound values there (addresses, hashes), HTTP clients put URLs with tokens, validators put the submitted value.
 */
export function describeError(error: unknown): { name: string; code: string | null; at: string[] } {
  if (!(error instanceof Error)) return { name: typeof error, code: null, at: [] }
  const code = (error as { code?: unknown }).code
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  return { name: error.name, code: typeof code === 'string' ? code : null, at: frames.slice(0, 6).map((line) => line.trim()) }
}
