import { setImmediate as immediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AuthMail, Mailer } from '../../src'
import { createEvents } from '../../src/events'
import { createPostman } from '../../src/mail/postman'
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
  setTimeout: (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
}))

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function office(send: (mail: AuthMail) => unknown) {
  const logs = logTap()
  const events = createEvents(logs)
  const failures: unknown[] = []
  events.on('mail.failed', (payload) => failures.push(payload))
  const asked: number[] = []
  let elapsed = 0
  const mailer = {
    send(mail: AuthMail) {
      asked.push(elapsed)
      return send(mail)
    },
  } as Mailer
  const postman = createPostman({ mailer, events, logger: logs })
  /** Seconds go by, one after the other. */
  async function wait(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await vi.advanceTimersByTimeAsync(1_000)
      elapsed += 1
    }
  }
  return { postman, logs, failures, asked, wait }
}

describe('the postman', () => {
  test('asks the mailer after the caller has gone on, with a mail nobody can change any more', async () => {
    const seen: AuthMail[] = []
    const { postman, wait, asked, failures } = office(async (mail) => void seen.push(mail))
    postman.post(mail, 'user-1')
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
  ])('a mailer that %s is asked three times, 1 and 10 seconds later; then mail.failed says refused, and whose', async (_what, send) => {
    const { postman, wait, asked, failures, logs } = office(send)
    postman.post(mail, 'user-1')
    await wait(300)
    expect(asked).toEqual([0, 1, 11])
    expect(failures).toEqual([{ kind: 'activation', userId: 'user-1', reason: 'refused' }])
    expect(logs.entries).toHaveLength(1)
    expect(logs.text()).not.toMatch(/ana@|canary/)
  })

  test('one that sends at the second time has sent', async () => {
    let times = 0
    const { postman, wait, asked, failures, logs } = office(async () => {
      if (times++ === 0) throw new Error('busy')
    })
    postman.post(mail, 'user-1')
    await wait(300)
    expect([asked.length, failures, logs.entries]).toEqual([2, [], []])
  })

  test.each([
    ['hangs', () => new Promise(() => {})],
    ['takes three minutes', () => new Promise((resolve) => setTimeout(resolve, 180_000))],
    ['rejects after three minutes', () => new Promise((_, reject) => setTimeout(reject, 180_000))],
  ])('one that %s may have sent: never asked again; mail.failed says late after two minutes', async (_what, send) => {
    const { postman, wait, asked, failures } = office(send)
    postman.post(mail, 'user-1')
    await wait(119)
    expect(failures).toEqual([])
    await wait(300)
    expect(asked).toHaveLength(1)
    expect(failures).toEqual([{ kind: 'activation', userId: 'user-1', reason: 'late' }])
  })

  test('one that takes a minute has all the time it needs', async () => {
    const { postman, wait, asked, failures } = office(() => new Promise((resolve) => setTimeout(resolve, 60_000)))
    postman.post(mail, 'user-1')
    await wait(300)
    expect([asked.length, failures]).toEqual([1, []])
  })

  test('holds a thousand mails at most; the one too many is not sent, and mail.failed says too_many', async () => {
    const { postman, wait, asked, failures } = office(() => new Promise(() => {}))
    for (let number = 0; number < 1_003; number++) postman.post(mail, `user-${number}`)
    await wait(1)
    expect(asked).toHaveLength(1_000)
    expect(failures).toEqual([1_000, 1_001, 1_002].map((number) => ({ kind: 'activation', userId: `user-${number}`, reason: 'too_many' })))
    await wait(120)
    expect(failures).toHaveLength(1_003)
    postman.post(mail, 'user-next')
    await wait(1)
    expect(asked).toHaveLength(1_001)
  })

  test('in a hurry tries at once what waits, twice if it must, and from then on each mail once', async () => {
    const { postman, wait, asked, failures } = office(async () => {
      throw new Error('canary: no server')
    })
    postman.post(mail, 'user-1')
    await vi.advanceTimersByTimeAsync(1)
    expect([asked.length, failures.length]).toEqual([1, 0])
    postman.hurry()
    await vi.advanceTimersByTimeAsync(1)
    await vi.advanceTimersByTimeAsync(1)
    expect([asked.length, failures.length]).toEqual([3, 1])
    expect(postman.ended()).toBeNull()

    postman.post(mail, 'user-1')
    await wait(20)
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
    createPostman({ mailer: { send: () => Promise.reject(new Error('no')) }, events, logger: logs }).post(mail, 'user-1')
    for (let second = 0; second < 20; second++) await vi.advanceTimersByTimeAsync(1_000)
    await immediate()
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
    expect(logs.entries).toHaveLength(2)
  })
})

describe('a place kept at the postman', () => {
  test('a thousand places and no more; one that is released, or whose mail is sent, makes room; other mails take none', async () => {
    const { postman, wait, asked } = office(async () => undefined)
    for (let number = 0; number < 1_000; number++) postman.post(mail, 'user-1')
    const places = Array.from({ length: 1_000 }, () => postman.reserve())
    expect(places.every((place) => place !== null)).toBe(true)
    expect(postman.reserve()).toBeNull()
    places[0]?.release()
    places[0]?.release()
    places[0]?.post(mail, 'user-1')
    const again = postman.reserve()
    expect([again === null, postman.reserve()]).toEqual([false, null])
    places[1]?.post(mail, 'user-1')
    places[1]?.post(mail, 'user-1')
    places[1]?.release()
    expect(postman.reserve()).toBeNull()
    await wait(1)
    expect([postman.reserve() === null, postman.reserve()]).toEqual([false, null])
    expect(asked).toHaveLength(1_001)
  })

  test('a mail in a place is tried as often as another, and is waited for', async () => {
    const { postman, wait, asked, failures } = office(() => Promise.reject(new Error('no server')))
    postman.reserve()?.post(mail, 'user-1')
    expect(postman.ended()).not.toBeNull()
    await wait(20)
    expect([asked, failures, postman.ended()]).toEqual([[0, 1, 11], [{ kind: 'activation', userId: 'user-1', reason: 'refused' }], null])
  })
})
