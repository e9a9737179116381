import type { Terminal } from './terminal'

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
