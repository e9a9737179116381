/** The output of a subcommand: `json` with `--json`, else `text`. `note` goes to stderr and is not part of the result. */
export type Answer = Result | Written

interface Result {
  readonly json: object
  /** Without the last line end. */
  readonly text: string
  readonly note?: string
  /** True if there is a result that means failure: exit 1. */
  readonly isNo?: boolean
  /** The error behind the result, for `--verbose`. */
  readonly cause?: unknown
}

/** The subcommand wrote its result itself, because it is too long for memory. */
interface Written {
  readonly isWritten: true
  readonly note: string
  readonly isNo?: boolean
  readonly cause?: unknown
}

/** The command line is wrong: exit 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command failed: exit 1. */
export class CommandRefusal extends Error {
  override readonly name = 'CommandRefusal'
  /** Stable, for programs. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** True for an error of the command itself. */
export function isOwn(error: unknown): error is UsageError | CommandRefusal {
  return error instanceof UsageError || error instanceof CommandRefusal
}
