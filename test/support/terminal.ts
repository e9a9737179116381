import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { stripVTControlCharacters } from 'node:util'

/** A pseudo terminal of the operating system, around a command. */
const pty = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'

interface Typed {
  cwd: string
  env: Record<string, string | undefined>
  /** One for each question, which ends with its default in brackets. */
  answers: readonly string[]
  /** Told of the process, so that a test that fails can end it. */
  started?: (child: ChildProcess) => void
}

/** Runs a command on a terminal at which somebody waits for each question. `left`: answers that nobody asked for. */
export async function onTerminal(command: readonly string[], { cwd, env, answers, started }: Typed) {
  const child = spawn('python3', ['-c', pty, ...command], { cwd, env })
  started?.(child)
  const left = [...answers]
  let presented = ''
  let answered = -1
  child.stdout.on('data', (chunk) => {
    presented += chunk
    const lines = stripVTControlCharacters(presented).split('\n')
    if (lines.length === answered || !/\[[\w-]+\] $/.test(lines.at(-1) ?? '')) return
    answered = lines.length
    child.stdin.write(`${left.shift() ?? ''}\r`)
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, left, presented: stripVTControlCharacters(presented).replaceAll('\r\n', '\n') }
}
