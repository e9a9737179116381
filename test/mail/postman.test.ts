import { setImmediate as immediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AuthMail, Mailer } from '../../src'
import { createEvents } from '../../src/core/events'
import { createMailQueue } from '../../src/mail/mail-queue'
import { logTap } from '../support/log-tap'

const mail: AuthMail = {
  kind: 'activation',
  to: 'ana@example.test',
  name: 'Ana',
  url: 'https://app.example.test/activate/canary-token',
  expiresAt: new Date('2026-03-08T12:00:00.000Z'),
  locale: 'en-US',
  subject: 'Activate your account',
  text: 'canary-text',
  html: '<p>canary-text</p>',
}

// The postman's pauses and deadline are minutes.
vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof import('node:timers/promises')>()),
  setTimeout: (milliseconds: number, _value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      if (milliseconds === 0) return setImmediate(resolve)
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort)
      setTimeout(() => {
        signal?.removeEventListener('abort', abort)
        resolve(undefined)
      }, milliseconds)
    }),
}))

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function office(send: (mail: AuthMail) => unknown, concurrency = 5_000) {
  const logs = logTap()
  const events = createEvents(logs)
  const failures: unknown[] = []
  events.on('mail.failed', (payload) => failures.push(payload))
  const asked: number[] = []
  const begunAt = Date.now()
  const mailer = {
    send(mail: AuthMail) {
      asked.push(Math.floor((Date.now() - begunAt) / 1_000))
      return send(mail)
    },
  } as Mailer
  const mailQueue = createMailQueue({ mailer, events, logger: logs, concurrency })
  /** Seconds go by, one after the other. */
  async function wait(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) await vi.advanceTimersByTimeAsync(1_000)
  }
  return { mailQueue, logs, failures, asked, wait }
}

describe('the postman', () => {
  test('asks the mailer after the caller has gone on, with a mail nobody can change any more', async () => {
    const seen: AuthMail[] = []
    const { mailQueue, wait, asked, failures } = office(async (mail) => void seen.push(mail))
    mailQueue.post(mail, 'user-1')
    await Promise.resolve()
    expect(asked).toEqual([])
    await wait(1)
    expect(seen).toEqual([mail])
    expect(Object.isFrozen(seen[0])).toBe(true)
    await wait(200)
    expect([asked.length, failures]).toEqual([1, []])
  })

  test.each([
    ['rejects', () => Promise.reject(new Error('ana@example.test refused by smtp://canary@relay'))],
    [
      'throws before its first await',
      () => {
        throw new Error('ana@example.test refused by smtp://canary@relay')
      },
    ],
    ['throws what is no error', () => Promise.reject(undefined)],
  ])('a mailer that %s is asked again for an hour with growing pauses; then mail.failed says refused, and whose', async (_what, send) => {
    const { mailQueue, wait, asked, failures, logs } = office(send)
    mailQueue.post(mail, 'user-1')
    await wait(3_599)
    expect(failures).toEqual([])
    await wait(300)
    const pauses = asked.map((at, index) => at - (asked[index - 1] ?? 0)).slice(1)
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, ...Array(10).fill(300), 89])
    expect(failures).toEqual([{ kind: 'activation', userId: 'user-1', reason: 'refused' }])
    expect(logs.entries.map(({ level, fields }) => [level, Object(fields).count])).toEqual([
      ['warn', 1],
      ['error', undefined],
    ])
    expect(logs.text()).not.toMatch(/ana@|canary/)
  })

  test('one that sends at the second time has sent', async () => {
    let times = 0
    const { mailQueue, wait, asked, failures, logs } = office(async () => {
      if (times++ === 0) throw new Error('busy')
    })
    mailQueue.post(mail, 'user-1')
    await wait(300)
    expect([asked.length, failures, logs.entries.map(({ message }) => message)]).toEqual([
      2,
      [],
      [expect.stringContaining('a mail could not be sent yet. doorward tries again for one hour.')],
    ])
  })

  test.each([
    ['hangs', () => new Promise(() => {})],
    ['takes three minutes', () => new Promise((resolve) => setTimeout(resolve, 180_000))],
    ['rejects after three minutes', () => new Promise((_, reject) => setTimeout(reject, 180_000))],
  ])('one that %s may have sent: never asked again; mail.failed says late after two minutes', async (_what, send) => {
    const { mailQueue, wait, asked, failures } = office(send)
    mailQueue.post(mail, 'user-1')
    await wait(119)
    expect(failures).toEqual([])
    await wait(300)
    expect(asked).toHaveLength(1)
    expect(failures).toEqual([{ kind: 'activation', userId: 'user-1', reason: 'late' }])
  })

  test('one that takes a minute has all the time it needs', async () => {
    const { mailQueue, wait, asked, failures } = office(() => new Promise((resolve) => setTimeout(resolve, 60_000)))
    mailQueue.post(mail, 'user-1')
    await wait(300)
    expect([asked.length, failures]).toEqual([1, []])
  })

  test('hands the mailer so many mails at once and no more; a mail between two attempts takes no place of theirs', async () => {
    let [atOnce, most, sent] = [0, 0, 0]
    const { mailQueue, wait, failures } = office(async () => {
      most = Math.max(most, ++atOnce)
      await new Promise((resolve) => setTimeout(resolve, 500))
      atOnce--
      if (sent++ < 20) throw new Error('busy')
    }, 5)
    for (let number = 0; number < 50; number++) mailQueue.post(mail, 'user-1')
    await wait(60)
    expect({ most, sent, failures }).toEqual({ most: 5, sent: 70, failures: [] })
  })

  test('holds a thousand mails at most before their first attempt; the one too many is not sent, and mail.failed says too_many', async () => {
    const { mailQueue, wait, asked, failures } = office(() => new Promise(() => {}))
    for (let number = 0; number < 1_003; number++) mailQueue.post(mail, `user-${number}`)
    await wait(1)
    expect(asked).toHaveLength(1_000)
    expect(failures).toEqual([1_000, 1_001, 1_002].map((number) => ({ kind: 'activation', userId: `user-${number}`, reason: 'too_many' })))
    await wait(120)
    expect(failures).toHaveLength(1_003)
    mailQueue.post(mail, 'user-next')
    await wait(1)
    expect(asked).toHaveLength(1_001)
  })

  test('five thousand mails wait for another attempt and no more; they block neither new mails nor reserved ones', async () => {
    const { mailQueue, failures } = office(() => Promise.reject(new Error('no server')))
    for (let round = 0; round < 5; round++) {
      for (let number = 0; number < 1_000; number++) mailQueue.post(mail, 'user-1')
      await vi.advanceTimersByTimeAsync(0)
    }
    expect(failures).toEqual([])
    mailQueue.reserve()?.post(mail, 'user-2')
    await vi.advanceTimersByTimeAsync(0)
    expect(failures).toEqual([{ kind: 'activation', userId: 'user-2', reason: 'too_many' }])
    expect(mailQueue.reserve()).not.toBeNull()
  })

  test('finish() tries once more what waits, at once, and does not change what comes later', async () => {
    const { mailQueue, wait, asked, failures } = office(async () => {
      throw new Error('canary: no server')
    })
    mailQueue.post(mail, 'user-1')
    await wait(2)
    expect([asked.length, failures.length]).toEqual([2, 0])
    const finished = mailQueue.finish()
    await vi.advanceTimersByTimeAsync(1)
    await finished
    expect([asked.length, failures.length]).toEqual([3, 1])

    mailQueue.post(mail, 'user-1')
    await wait(8)
    expect([asked.length, failures.length]).toEqual([7, 1])
  })

  test('finish() tries a mail whose attempt is under way once more, and one that had none twice', async () => {
    const { mailQueue, wait, asked, failures } = office(() => new Promise((_, reject) => setTimeout(reject, 400)), 1)
    mailQueue.post(mail, 'user-1')
    mailQueue.post(mail, 'user-2')
    await vi.advanceTimersByTimeAsync(100)
    expect(asked).toHaveLength(1)
    const finished = mailQueue.finish()
    await wait(2)
    await finished
    expect([asked.length, failures.length]).toEqual([4, 2])
  })

  test('a listener of mail.failed that throws changes nothing', async () => {
    const logs = logTap()
    const events = createEvents(logs)
    events.on('mail.failed', () => {
      throw new Error('canary')
    })
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    createMailQueue({ mailer: { send: () => Promise.reject(new Error('no')) }, events, logger: logs, concurrency: 5 }).post(mail, 'user-1')
    for (let minute = 0; minute < 61; minute++) await vi.advanceTimersByTimeAsync(60_000)
    await immediate()
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
    expect(logs.entries).toHaveLength(3)
  })
})

describe('a place kept at the postman', () => {
  test('a thousand places and no more; one that is released, or whose mail is sent, makes room; other mails take none', async () => {
    const { mailQueue, wait, asked } = office(async () => undefined)
    for (let number = 0; number < 1_000; number++) mailQueue.post(mail, 'user-1')
    const places = Array.from({ length: 1_000 }, () => mailQueue.reserve())
    expect(places.every((place) => place !== null)).toBe(true)
    expect(mailQueue.reserve()).toBeNull()
    places[0]?.release()
    places[0]?.release()
    places[0]?.post(mail, 'user-1')
    const again = mailQueue.reserve()
    expect([again === null, mailQueue.reserve()]).toEqual([false, null])
    places[1]?.post(mail, 'user-1')
    places[1]?.post(mail, 'user-1')
    places[1]?.release()
    expect(mailQueue.reserve()).toBeNull()
    await wait(1)
    expect([mailQueue.reserve() === null, mailQueue.reserve()]).toEqual([false, null])
    expect(asked).toHaveLength(1_001)
  })

  test('a mail in a place is tried as often as another, and is waited for', async () => {
    const { mailQueue, wait, asked, failures } = office(() => Promise.reject(new Error('no server')))
    mailQueue.reserve()?.post(mail, 'user-1')
    await wait(8)
    expect([asked, failures]).toEqual([[0, 1, 3, 7], []])
    const finished = mailQueue.finish()
    await vi.advanceTimersByTimeAsync(1)
    await finished
    expect(failures).toEqual([{ kind: 'activation', userId: 'user-1', reason: 'refused' }])
  })
})
