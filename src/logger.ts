/** pino-shaped: an object of fields first, then a message. The default writes to the console. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const consoleLogger: Logger = {
  info: (fields, message) => console.info(...line(fields, message)),
  warn: (fields, message) => console.warn(...line(fields, message)),
  error: (fields, message) => console.error(...line(fields, message)),
}

/** No fields, no `{}` at the end of the line. */
function line(fields: object, message: string): readonly unknown[] {
  return Object.keys(fields).length === 0 ? [message] : [message, fields]
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

export interface DescribedError {
  name: string
  code: string | null
  /** Only where it is ours (`withOwnMessage`). */
  message?: string
  at: string[]
}

/**
 * Returns what a log may say of an unknown error: its kind and where it happened. The message only where it is ours:
 * database drivers put bound values there (addresses, hashes), HTTP clients put URLs with tokens, validators the submitted value.
 */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: typeof error, code: null, at: [] }
  const message = ownMessage in error ? { message: error.message.slice(0, 1_000) } : {}
  return { name: word(error.name) ?? 'Error', code: word((error as { code?: unknown }).code), ...message, at: framesOf(error) }
}

// Registered: another copy of the package may have made the error.
const ownMessage = Symbol.for('doorward.own-message.v1')

/** Marks an error whose message is ours: it holds no value of a host, a person or a driver, so logs show it. Returns the error. */
export function withOwnMessage<Marked extends Error>(error: Marked): Marked {
  return Object.defineProperty(error, ownMessage, { value: true }) // not enumerable: nothing that prints or copies an error shows it
}

/** Anybody's error may carry anything under these names; what is no identifier is not repeated. */
function word(value: unknown): string | null {
  return typeof value === 'string' && /^[\w.:-]{1,64}$/.test(value) ? value : null
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
