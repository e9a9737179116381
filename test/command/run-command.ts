import { randomUUID } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { run } from '../../src/cli/run'
import type { Terminal } from '../../src/cli/terminal'

export interface RunOptions {
  env?: Record<string, string | undefined>
  folder?: string
  stdin?: string
  terminal?: Terminal | null
}

export const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'doorward-command-'))

/** One run of the command, with what it wrote. Words are parted by blanks. */
export async function doorward(line: string, { env = {}, folder = emptyFolder(), stdin = '', terminal = null }: RunOptions = {}) {
  const written = { out: '', err: '' }
  const exitCode = await run(line.split(' ').filter(Boolean), {
    env,
    folder,
    out: (text) => (written.out += text),
    err: (text) => (written.err += text),
    terminal,
    stdin: () => Readable.from([stdin]),
  })
  return { exitCode, ...written }
}

/** A folder whose `auth.mjs` exports what is given. */
export function appFolder(exported: unknown, folder = emptyFolder()): string {
  const name = `doorward-test-${randomUUID()}`
  Reflect.set(globalThis, Symbol.for(name), exported)
  writeFileSync(join(folder, 'auth.mjs'), `export const auth = globalThis[Symbol.for('${name}')]\n`)
  return folder
}

/** A person who gives these answers, one after the other. */
export function personWho(...answers: string[]): Terminal & { questions: string[] } {
  const questions: string[] = []
  const ask = async (question: string) => {
    questions.push(question)
    return answers.shift() ?? ''
  }
  return { questions, ask, askUnseen: ask }
}
