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
