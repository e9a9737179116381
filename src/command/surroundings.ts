import type { Terminal } from './terminal'

/** Where a run of the command reads and writes. */
export interface Surroundings {
  /** What the app's module reads: a `.env` file is read into it. */
  readonly env: Record<string, string | undefined>
  /** Where the app is. */
  readonly folder: string
  /** What it returns may be waited for, where much is written. */
  readonly out: (text: string) => unknown
  readonly err: (text: string) => void
  /** Null: nobody can be asked. */
  readonly terminal: Terminal | null
  /** Everything that comes in. */
  readonly stdin: () => AsyncIterable<Buffer | string>
}
