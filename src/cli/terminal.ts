import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

export interface Terminal {
  ask(question: string): Promise<string>
  askUnseen(question: string): Promise<string>
}

/** Null: no terminal. Questions go to standard error, because standard output is for results. */
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

/** `--json` prints `json`, otherwise `text`. `note` goes to stderr and is not part of the result. */
export type CommandAnswer = Result | Written

interface Result {
  readonly json: object
  readonly text: string
  readonly note?: string
  /** The result means failure: the command exits with 1. */
  readonly isNo?: boolean
  readonly cause?: unknown
}

/** The result is too long for memory, so the subcommand wrote it itself. */
interface Written {
  readonly isWritten: true
  readonly note: string
  readonly isNo?: boolean
  readonly cause?: unknown
}

/** The command exits with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command exits with 1. */
export class CommandRefusal extends Error {
  override readonly name = 'CommandRefusal'
  /** Stable, for programs. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export function isOwn(error: unknown): error is UsageError | CommandRefusal {
  return error instanceof UsageError || error instanceof CommandRefusal
}

/** Other people write the names and addresses in a database. Such a text could move the cursor or look like another row. */
export function printable(value: unknown): string {
  return String(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** 32 bytes: base64url for `AUTH_JWT_SECRET`, base64 for `AUTH_MFA_SECRET_KEY`. */
export function newSecret(words: readonly string[]): CommandAnswer {
  const [kind, ...more] = words
  if (more.length > 0 || (kind !== undefined && kind !== 'mfa')) throw new UsageError('Write `doorward secret` or `doorward secret mfa`.')
  const secret = randomBytes(32).toString(kind === 'mfa' ? 'base64' : 'base64url')
  return { json: { secret }, text: secret }
}

export interface Surroundings {
  /** The command adds the variables of `.env`. */
  readonly env: Record<string, string | undefined>
  readonly folder: string
  /** For long output, the caller awaits the returned value. */
  readonly out: (text: string) => unknown
  readonly err: (text: string) => void
  readonly terminal: Terminal | null
  readonly stdin: () => AsyncIterable<Buffer | string>
}
