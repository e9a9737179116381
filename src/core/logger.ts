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

/** Returns the arguments for a method of `console`. Leaves out empty fields, so that the line does not end with `{}`. */
function line(fields: object, message: string): readonly unknown[] {
  return Object.keys(fields).length === 0 ? [message] : [message, fields]
}

/** Returns a logger that never throws and never rejects, because an error while logging must not fail a request or end the process. */
export function safely(logger: Logger): Logger {
  const guard = (level: keyof Logger) => (fields: object, message: string) => quietly(() => logger[level](fields, message))
  return { info: guard('info'), warn: guard('warn'), error: guard('error') }
}

/** Calls a method of a host's logger. The method may throw, or return a promise that rejects. Nobody could log that error. */
export function quietly(log: () => unknown): void {
  try {
    Promise.resolve(log()).catch(() => undefined)
  } catch {}
}

/** A line of the log that a flood of requests can cause. */
export interface CountedLine {
  readonly level: 'warn' | 'error'
  /** Lines of one kind are counted together. */
  readonly kind: string
  readonly fields: object
  readonly message: string
}

const intervalMs = 10_000

/** The most kinds of a logger. Further kinds are counted as one. The limit bounds the memory. */
const mostKinds = 100

const kindsOf = new WeakMap<Logger, Map<string, { line: CountedLine; count: number }>>()

/**
 * Logs the first line of a kind at once. After that, logs at most one line of the kind every ten seconds: the last one, with the number of
 * lines since the line before as `count`.
 */
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
  /** The error's message. Set only for errors with the mark of `withOwnMessage`. */
  message?: string
  at: string[]
}

/**
 * Returns the parts of an unknown error that a log may show: its kind and where it happened. Shows the message only if the message is ours.
 * Database drivers put addresses and hashes into messages. HTTP clients put URLs with tokens into messages. Validators put the submitted
 * value into messages.
 */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: typeof error, code: null, at: [] }
  const message = hasOwnMessage(error) ? { message: error.message.slice(0, 1_000) } : {}
  return { name: word(error.name) ?? 'Error', code: word((error as { code?: unknown }).code), ...message, at: framesOf(error) }
}

// A registered symbol, because another copy of the package can have made the error.
const ownMessage = Symbol.for('doorward.own-message.v1')

/**
 * Marks an error whose message is ours, so that logs show the message. A message of ours contains no value of a host, a person or a driver.
 * Returns the error.
 */
export function withOwnMessage<Marked extends Error>(error: Marked): Marked {
  return Object.defineProperty(error, ownMessage, { value: true }) // not enumerable, so that printing or copying the error omits the mark
}

export function hasOwnMessage(error: unknown): error is Error {
  return error instanceof Error && ownMessage in error
}

/** Returns the value if it looks like an identifier. Errors of other code can have any value in these fields. */
function word(value: unknown): string | null {
  return typeof value === 'string' && /^[\w.:-]{1,64}$/.test(value) ? value : null
}

/**
 * Returns the first frames of a stack, without the message. Lines of the message can look like frames. If the stack does not contain the
 * message, the function returns no frames, because it does not know where the message ends.
 */
function framesOf({ stack, message }: Error): string[] {
  if (typeof stack !== 'string' || typeof message !== 'string' || !stack.includes(message)) return []
  const frames = stack.slice(stack.indexOf(message) + message.length).split('\n')
  return frames
    .filter((line) => /^ +at /.test(line))
    .slice(0, 6)
    .map((line) => line.trim())
}
