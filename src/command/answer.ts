/** What a subcommand says: `json` with `--json`, else `text`; `note` goes to stderr, and is no part of the result. */
export type Answer = Result | Written

interface Result {
  readonly json: object
  /** Without the last line end. */
  readonly text: string
  readonly note?: string
  /** True: there is a result, and it is no success. */
  readonly isNo?: boolean
}

/** The subcommand wrote its result itself, because it is too long to be held. */
interface Written {
  readonly isWritten: true
  readonly note: string
  readonly isNo?: boolean
}

/** The command was written wrongly: exit 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The answer is no: exit 1. */
export class CommandRefusal extends Error {
  override readonly name = 'CommandRefusal'
  /** Stable, for programs. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
