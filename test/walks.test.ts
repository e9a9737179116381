import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newAddress, onLocal, otherPassword, password, post, resetLink, signedIn } from './local/people'
import { challengeOf, enrolled, mfaSettings, verify } from './mfa/people'
import { newPerson } from './social/redirect-steps'
import { signIn } from './support/app'
import { databases } from './support/databases'

const page = readFileSync(join(import.meta.dirname, '../docs/architecture.md'), 'utf8')
const chapter = page.slice(page.indexOf('## Walks'))
const walks = [...chapter.matchAll(/^\*\*(.+?)\*\*.*\n\n```text\n([\s\S]*?)```/gm)].map(([, name = '', list = '']) => ({
  name,
  files: [...list.matchAll(/^([a-z-]+(?:\/[a-z-]+)*\.ts)/gm)].map(([file]) => file),
}))

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onLocal(database)
type Host = Awaited<ReturnType<typeof start>>

/** Prepares what a walk needs, and returns its request. */
const requests: Readonly<Record<string, (host: Host) => Promise<() => PromiseLike<{ status: number }>>>> = {
  Login: async (host) => {
    const { email } = await signedIn(host)
    return () => post(host, '/login', { email, password })
  },
  'Second step': async (host) => {
    const person = await enrolled(host)
    const challenge = await challengeOf(host, person)
    return () => verify(host, challenge, person.app.nextCode())
  },
  Refresh: async (host) => {
    const { refreshToken } = await signedIn(host)
    return () => post(host, '/refresh', { refresh_token: refreshToken })
  },
  Signup: async (host) => () => post(host, '/signup', { email: newAddress(), password }),
  Reset: async (host) => {
    const { email } = await signedIn(host)
    const token = await resetLink(host, email)
    return () => post(host, '/password-reset/confirm', { token, new_password: otherPassword })
  },
  Callback: async (host) => () => signIn(host, host.browser(), { profile: newPerson() }),
  'Guarded route of a host': async (host) => {
    const { token } = await signedIn(host)
    host.app.get('/guarded', host.auth.guards.requireAuth(), (_req, res) => void res.json({}))
    return () => host.browser().get('/guarded').set('Authorization', `Bearer ${token}`)
  },
  'Server-side session': async (host) => {
    const { email } = await signedIn(host)
    host.app.get('/account', host.auth.guards.requireSession(), (_req, res) => void res.json({}))
    const browser = host.browser()
    return async () => {
      await browser.post('/auth/session/login').set('Origin', 'https://app.example.test').send({ email, password }).expect(200)
      return browser.get('/account')
    }
  },
}

describe('the walks of docs/architecture.md', () => {
  const inspector = new Session()
  beforeAll(async () => {
    inspector.connect()
    await inspector.post('Profiler.enable')
  })
  afterAll(() => inspector.disconnect())

  /** The files of `src` that have a function which runs during the work. */
  async function filesOf(work: () => PromiseLike<unknown>): Promise<ReadonlySet<string>> {
    await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await work()
    const { result } = await inspector.post('Profiler.takePreciseCoverage')
    await inspector.post('Profiler.stopPreciseCoverage')
    const entered = result.filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)))
    return new Set(entered.flatMap(({ url }) => /\/src\/(.+\.ts)$/.exec(url)?.[1] ?? []))
  }

  test('are the walks that this file knows', () => {
    expect(walks.map(({ name }) => name)).toEqual(Object.keys(requests))
  })

  test.each(walks)('$name enters each of its files', async ({ name, files }) => {
    const host = await start({ settings: { ...mfaSettings, publicUrl: 'https://app.example.test' } })
    const send = await requests[name]?.(host)
    if (!send) throw new Error(`no request for ${name}`)
    let status = 0
    const entered = await filesOf(async () => {
      status = (await send()).status
    })
    expect([200, 201]).toContain(status)
    expect(files.length).toBeGreaterThan(4)
    expect(files.filter((file) => !entered.has(file))).toEqual([])
  })
})
