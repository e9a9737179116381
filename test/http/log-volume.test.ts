import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Logger } from '../../src'
import { logCounted, safely } from '../../src/core/logger'
import { manyClients, password, times, wrongPassword } from '../local/many-clients'
import { logTap } from '../support/log-tap'

const open = manyClients()
const ana = 'ana@example.test'

describe('overload answers', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true }))
  afterEach(() => void vi.useRealTimers())

  test('429 is one line per kind and ten seconds, with a count and without a stack', async () => {
    const logs = logTap()
    const host = await open({ options: { logger: logs } })
    await times(5, () => host.logIn(ana, wrongPassword))
    logs.entries.length = 0
    const refused = await times(30, () => host.logIn(ana, wrongPassword))
    await host.post('/auth/signup', { email: 'no address', password })
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]))
    await vi.advanceTimersByTimeAsync(60_000)

    const fields = {
      code: 'LOGIN_THROTTLED',
      method: 'POST',
      route: '/login',
      cause: { name: 'LoginThrottledError', code: 'LOGIN_THROTTLED' },
    }
    const line = { level: 'warn', message: 'doorward: a rate limit refused requests' }
    expect(logs.entries).toEqual([
      { ...line, fields: { ...fields, count: 1 } },
      { ...line, fields: { ...fields, count: 29 } },
    ])
  })

  test('503 of a dead database is one line per kind and ten seconds', async () => {
    const logs = logTap()
    const host = await open({ options: { logger: logs } })
    await host.knex.destroy()
    logs.entries.length = 0
    const refused = await times(30, () => host.logIn(ana, password))
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]))
    await vi.advanceTimersByTimeAsync(60_000)

    const lines = logs.entries.filter(({ message }) => message === 'doorward: a request failed')
    expect(lines.map(({ level, fields }) => [level, (fields as { count: number }).count])).toEqual([
      ['error', 1],
      ['error', 29],
    ])
    expect(JSON.stringify(lines)).not.toMatch(/"at":|"stack":|node_modules/)
  })

  test('after ten quiet seconds, the next one is logged at once; more than a hundred kinds share one line', async () => {
    const logs = logTap()
    const line = (kind: string) => ({ level: 'warn', kind, fields: { kind }, message: 'refused' }) as const
    logCounted(logs, line('a'))
    await vi.advanceTimersByTimeAsync(10_000)
    logCounted(logs, line('a'))
    expect(logs.entries.map(({ fields }) => fields)).toEqual(Array(2).fill({ kind: 'a', count: 1 }))
    for (let kind = 0; kind < 1_000; kind++) logCounted(logs, line(`kind ${kind}`))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(logs.entries).toHaveLength(2 + 99 + 1 + 1)
    expect(logs.entries.at(-1)?.fields).toEqual({ kind: 'kind 999', count: 900 })
  })
})

describe('a logger that fails', () => {
  const fault = new Error('canary: the log is full')
  const failing: [string, () => unknown][] = [
    [
      'throws',
      () => {
        throw fault
      },
    ],
    ['rejects', () => Promise.reject(fault)],
  ]

  test.each(failing)('and %s harms no request and not the process', async (_how, fail) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const logger = { info: fail, warn: fail, error: fail } as Logger
    const host = await open({
      settings: { backendLinks: true },
      options: { logger, mailer: { send: () => Promise.reject(new Error('no server')) } },
    })
    host.auth.events.on('login.failed', () => Promise.reject(new Error('a listener')))
    await host.signUp(ana)
    expect((await host.logIn(ana, password)).status).toBe(200)
    await times(5, () => host.logIn(ana, wrongPassword))
    expect((await host.logIn(ana, wrongPassword)).status).toBe(429)
    await host.auth.drain()
    await host.knex.destroy()
    expect((await host.logIn('eva@example.test', password)).status).toBe(503)
    safely(logger).info({}, 'one more')
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})
