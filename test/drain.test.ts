import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { AuthMail } from '../src'
import { createBackground } from '../src/core/background'
import { drainer } from '../src/router/create-auth-router'
import { appPerTest } from './support/app-per-test'
import { logTap } from './support/log-tap'
import { linkTemplates } from './support/mailbox'

const start = appPerTest()
const password = 'a quiet harbour in winter'

afterEach(() => {
  vi.useRealTimers()
})

/** A mailer that fails so often, and then sends. */
function failing(times: number) {
  const sent: AuthMail[] = []
  let asked = 0
  const mailer = {
    async send(mail: AuthMail) {
      asked++
      if (asked <= times) throw new Error('canary: no server')
      sent.push(mail)
    },
  }
  return { mailer, sent }
}

describe('auth.drain()', () => {
  test('sends at once the mail that waits for another attempt, and resolves when it is sent', async () => {
    const { mailer, sent } = failing(1)
    const host = await start({ settings: linkTemplates, options: { mailer } })
    await host.browser().post('/auth/signup').send({ email: 'ana@example.test', password })
    const before = performance.now()
    await host.auth.drain()

    expect(performance.now() - before).toBeLessThan(900) // the second attempt would come after a second
    expect(sent).toHaveLength(1)
  })

  test('may be called after every request: each call waits for the mail of its request, and a later mail is tried again as ever', async () => {
    let fails = false
    const sent: string[] = []
    const mailer = {
      async send({ to }: AuthMail) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        if (fails) throw new Error('no server')
        sent.push(to)
      },
    }
    const host = await start({ settings: linkTemplates, options: { mailer, timingDefence: true } })
    const people = ['ana@example.test', 'eva@example.test', 'rui@example.test']
    for (const [index, email] of people.entries()) {
      await host.browser().post('/auth/signup').send({ email, password })
      await host.auth.drain()
      expect(sent).toEqual(people.slice(0, index + 1))
    }

    fails = true
    await host.browser().post('/auth/password-reset/request').send({ email: 'ana@example.test' })
    await host.auth.drain()
    expect(host.logs.entries.filter(({ message }) => message.startsWith('doorward: a mail was not sent.'))).toHaveLength(1)
  })

  test('two calls at once each wait for what began before them', async () => {
    const ends: (() => void)[] = []
    const background = createBackground(logTap(), { isDelayed: false })
    const drain = drainer({ background, mailQueue: null })
    const done: string[] = []
    const work = () => new Promise<void>((resolve) => ends.push(resolve))
    background.run('first', work)
    const first = drain().then(() => done.push('first'))
    background.run('second', work)
    const second = drain().then(() => done.push('second'))
    await new Promise((resolve) => setImmediate(resolve))
    ends[0]?.()
    await first
    expect(done).toEqual(['first'])
    ends[1]?.()
    await second
    expect(done).toEqual(['first', 'second'])
  })

  test('resolves at once where nothing waits, without a mailer too', async () => {
    const { auth } = await start()
    await auth.drain()
    await auth.drain()
  })

  test('resolves after ten seconds whatever hangs', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const background = createBackground(logTap(), { isDelayed: false })
    background.run('a hook that hangs', () => new Promise(() => undefined))
    const drain = drainer({ background, mailQueue: null })
    let isDone = false
    void drain().then(() => {
      isDone = true
    })
    await vi.advanceTimersByTimeAsync(9_900)
    expect(isDone).toBe(false)
    await vi.advanceTimersByTimeAsync(200)
    expect(isDone).toBe(true)
  })

  test('afterwards nothing of ours keeps the process alive', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', join(import.meta.dirname, 'support/drained-child.ts')], { stdio: 'pipe' })
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += String(chunk)
    })
    const code = await new Promise((resolve) => child.once('exit', resolve))

    expect([code, said.trim()]).toEqual([0, 'drained; exit within a second: true'])
  }, 30_000)
})
