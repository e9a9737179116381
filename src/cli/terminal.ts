import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/** Asks a person questions. */
export interface Terminal {
  ask(question: string): Promise<string>
  /** Asks a question and hides the typed text. */
  askUnseen(question: string): Promise<string>
}

/** Returns the terminal; null if there is none. Questions go to standard error, because standard output is for results. */
export function terminalOf(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Terminal | null {
  if (!input.isTTY || !output.isTTY) return null
  return { ask: (question) => read(question, output), askUnseen: (question) => read(question, nowhere()) }

  async function read(question: string, echo: NodeJS.WritableStream): Promise<string> {
    const lines = createInterface({ input, output: echo, terminal: true })
    try {
      if (echo !== output) output.write(question)
      return await lines.question(echo === output ? question : '')
    } finally {
      lines.close()
      if (echo !== output) output.write('\n')
    }
  }
}

function nowhere(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() })
}

/**
 * The output of a subcommand. `--json` prints `json`. Otherwise the command prints `text`. `note` goes to stderr and is not part of the
 * result.
 */
export type CommandAnswer = Result | Written

interface Result {
  readonly json: object
  /** The text without its last line break. */
  readonly text: string
  readonly note?: string
  /** True if the result means failure. The command then exits with 1. */
  readonly isNo?: boolean
  /** The error that caused the result, for `--verbose`. */
  readonly cause?: unknown
}

/** The subcommand wrote its result itself, because the result is too long for memory. */
interface Written {
  readonly isWritten: true
  readonly note: string
  readonly isNo?: boolean
  readonly cause?: unknown
}

/** The command line is wrong. The command exits with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command failed. The command exits with 1. */
export class CommandRefusal extends Error {
  override readonly name = 'CommandRefusal'
  /** A stable code, for programs. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Returns true for an error of the command itself. */
export function isOwn(error: unknown): error is UsageError | CommandRefusal {
  return error instanceof UsageError || error instanceof CommandRefusal
}

/**
 * Escapes the characters that control a terminal or begin a new line. Other people write the names and addresses in a database. Without the
 * escapes, such a text could move the cursor or look like another row.
 */
export function printable(value: unknown): string {
  return String(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** Returns 32 random bytes. The secret for `AUTH_JWT_SECRET` is base64url. The secret for `AUTH_MFA_SECRET_KEY` is base64. */
export function newSecret(words: readonly string[]): CommandAnswer {
  const [kind, ...more] = words
  if (more.length > 0 || (kind !== undefined && kind !== 'mfa')) throw new UsageError('Write `doorward secret` or `doorward secret mfa`.')
  const secret = randomBytes(32).toString(kind === 'mfa' ? 'base64' : 'base64url')
  return { json: { secret }, text: secret }
}

/** The inputs and outputs of a run of the command. */
export interface Surroundings {
  /** The environment of the app's module. The command adds the variables of `.env`. */
  readonly env: Record<string, string | undefined>
  /** The folder of the app. */
  readonly folder: string
  /** Writes text. For long output, the caller awaits the returned value. */
  readonly out: (text: string) => unknown
  readonly err: (text: string) => void
  /** Null if the command cannot ask a person. */
  readonly terminal: Terminal | null
  /** Returns standard input. */
  readonly stdin: () => AsyncIterable<Buffer | string>
}
