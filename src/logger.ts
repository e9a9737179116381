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

/** A logger that fails must not turn a refusal into a crash, least of all in a promise nobody waits for. */
export function safely(logger: Logger): Logger {
  const guard = (level: keyof Logger) => (fields: object, message: string) => {
    try {
      logger[level](fields, message)
    } catch {
      // There is nowhere left to say it.
    }
  }
  return { info: guard('info'), warn: guard('warn'), error: guard('error') }
}

/**
 * What may be said of an unknown error in a log: its kind and where it happened. Never its message: database drivers
 * put bound values there (addresses, hashes), HTTP clients put URLs with tokens, validators put the submitted value.
 */
export function describeError(error: unknown): { name: string; code: string | null; at: string[] } {
  if (!(error instanceof Error)) return { name: typeof error, code: null, at: [] }
  return { name: word(error.name) ?? 'Error', code: word((error as { code?: unknown }).code), at: framesOf(error) }
}

/** Anybody's error may carry anything under these names; what is no identifier is not repeated. */
function word(value: unknown): string | null {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : null
}

/** The stack begins with the message, whose own lines may look like frames: without it, none is believed. */
function framesOf({ stack, message }: Error): string[] {
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return []
  const frames = stack.slice(stack.indexOf(message) + message.length).split('\n')
  return frames
    .filter((line) => /^ +at /.test(line))
    .slice(0, 6)
    .map((line) => line.trim())
}
