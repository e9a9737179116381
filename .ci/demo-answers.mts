import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

/** `npm run demo`, as a newcomer types it: it prints an address; its pages and the library's answer; and Ctrl-C ends it. */

const deadline = Date.now() + 120_000

async function main(): Promise<void> {
  // A process group of its own, so that the signal reaches what npm started too, like Ctrl-C in a terminal does.
  const demo = spawn('npm', ['run', 'demo'], { cwd: join(import.meta.dirname, '..'), stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const ended = once(demo, 'exit')
  let printed = ''
  demo.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk
    process.stdout.write(chunk)
  })
  try {
    const address = await answeringAddress(() => printed, ended)
    const outbox = await html(new URL('/outbox', address).href)
    if (!outbox?.includes('Demo only.')) throw new Error('the demo has no outbox')
    for (const path of ['login', 'signup', 'forgot-password']) {
      const page = await html(new URL(`/accounts/auth/${path}`, address).href)
      if (!page?.includes('Doorward demo')) throw new Error(`the demo has no page ${path}`)
    }
    console.log('The demo answers, and so do its outbox and the pages of the library.')
  } finally {
    if (demo.pid && demo.exitCode === null) process.kill(-demo.pid, 'SIGINT')
    await Promise.race([ended, tooLate('the demo did not end')])
  }
}

async function answeringAddress(printed: () => string, ended: Promise<unknown>): Promise<string> {
  let over = false
  ended.then(() => {
    over = true
  })
  while (Date.now() < deadline) {
    if (over) throw new Error('the demo ended by itself')
    const address = /https?:\/\/[\w.]+:\d+[^\s]*/.exec(printed())?.[0]
    if (address && (await html(address))) return address
    await wait(250)
  }
  throw new Error('the demo never answered')
}

async function html(address: string): Promise<string | null> {
  const response = await fetch(address).catch(() => null)
  const isPage = response?.status === 200 && response.headers.get('content-type')?.startsWith('text/html')
  return isPage ? response.text() : null
}

async function tooLate(sentence: string): Promise<never> {
  await wait(15_000)
  throw new Error(sentence)
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error)
    process.exit(1)
  },
)
