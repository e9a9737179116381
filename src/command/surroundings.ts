import type { Terminal } from './terminal'

/** Inputs and outputs of a run of the command. */
export interface Surroundings {
  /** The environment of the app's module; a `.env` file is read into it. */
  readonly env: Record<string, string | undefined>
  /** The folder of the app. */
  readonly folder: string
  /** Writes text. For long output, the caller awaits its result. */
  readonly out: (text: string) => unknown
  readonly err: (text: string) => void
  /** Null if no person can be asked. */
  readonly terminal: Terminal | null
  /** Returns standard input. */
  readonly stdin: () => AsyncIterable<Buffer | string>
}
