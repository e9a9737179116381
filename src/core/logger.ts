/** A logger in the style of pino: first an object of fields, then a message. The default logger writes to the console. */
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

function line(fields: object, message: string): readonly unknown[] {
  return Object.keys(fields).length === 0 ? [message] : [message, fields]
}

/** An error while logging must not fail a request or end the process. */
export function safely(logger: Logger): Logger {
  const guard = (level: keyof Logger) => (fields: object, message: string) => quietly(() => logger[level](fields, message))
  return { info: guard('info'), warn: guard('warn'), error: guard('error') }
}

/** A host's logger may throw or reject. Nobody could log that error. */
export function quietly(log: () => unknown): void {
  try {
    Promise.resolve(log()).catch(() => undefined)
  } catch {}
}

export interface CountedLine {
  readonly level: 'warn' | 'error'
  readonly kind: string
  readonly fields: object
  readonly message: string
}

const intervalMs = 10_000

/** Bounds the memory. Further kinds are counted as one. */
const mostKinds = 100

const kindsOf = new WeakMap<Logger, Map<string, { line: CountedLine; count: number }>>()

/** Logs the first line of a kind at once, then at most one every ten seconds: the last one, with `count` lines since. */
export function logCounted(logger: Logger, line: CountedLine): void {
  const kinds = kindsOf.get(logger) ?? new Map<string, { line: CountedLine; count: number }>()
  kindsOf.set(logger, kinds)
  const kind = kinds.has(line.kind) || kinds.size < mostKinds ? line.kind : ''
  const known = kinds.get(kind)
  const entry = known ?? { line, count: 0 }
  entry.line = line
  entry.count++
  if (known) return
  kinds.set(kind, entry)
  tell()

  function tell(): void {
    const { line, count } = entry
    if (count === 0) return void kinds.delete(kind)
    entry.count = 0
    logger[line.level]({ ...line.fields, count }, line.message)
    setTimeout(tell, intervalMs).unref()
  }
}

export interface DescribedError {
  name: string
  code: string | null
  /** Only for errors with the mark of `withOwnMessage`. */
  message?: string
  at: string[]
}

/**
 * Shows the kind and the place, and the message only if it is ours. Drivers put addresses and hashes into messages. HTTP clients put URLs
 * with tokens into them. Validators put the submitted value into them.
 */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: typeof error, code: null, at: [] }
  const message = hasOwnMessage(error) ? { message: error.message.slice(0, 1_000) } : {}
  return { name: word(error.name) ?? 'Error', code: word((error as { code?: unknown }).code), ...message, at: framesOf(error) }
}

// A registered symbol, because another copy of the package can have made the error.
const ownMessage = Symbol.for('doorward.own-message.v1')

/** Logs then show the message, so it must contain no value of a host, a person or a driver. Returns the error. */
export function withOwnMessage<Marked extends Error>(error: Marked): Marked {
  return Object.defineProperty(error, ownMessage, { value: true }) // not enumerable, so that printing or copying the error omits the mark
}

export function hasOwnMessage(error: unknown): error is Error {
  return error instanceof Error && ownMessage in error
}

/** Errors of other code can have any value in these fields. */
function word(value: unknown): string | null {
  return typeof value === 'string' && /^[\w.:-]{1,64}$/.test(value) ? value : null
}

/** Lines of the message can look like frames. If the stack does not contain the message, nobody knows where it ends: no frames. */
function framesOf({ stack, message }: Error): string[] {
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return []
  const frames = stack.slice(stack.indexOf(message) + message.length).split('\n')
  return frames
    .filter((line) => /^ +at /.test(line))
    .slice(0, 6)
    .map((line) => line.trim())
}
