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
