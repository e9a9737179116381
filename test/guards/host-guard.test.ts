import type { Request } from 'express'
import { describe, expect, test } from 'vitest'
import { errors, type GuardedAction } from '../../src'
import { bearerOf, newAddress, onLocal, password, post, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

const guarded: Readonly<Record<string, GuardedAction>> = {
  '/signup': 'signup',
  '/login': 'login',
  '/cookie/login': 'login',
  '/session/login': 'login',
  '/activation/request': 'link',
  '/password-reset/request': 'link',
}

describe('guardRequest', () => {
  test('17 is asked once for each request, with its action, the parsed body and the client', async () => {
    const seen: object[] = []
    const guardRequest = (req: Request, { action }: { action: GuardedAction }) =>
      void seen.push({ action, body: req.body, ip: req.ip, path: req.path, agent: req.get('user-agent') })
    const host = await start({ settings: { tokenDelivery: 'both' }, options: { guardRequest } })
    for (const [path, action] of Object.entries(guarded)) {
      const body = { email: newAddress(), password, captcha: { answer: 7 } }
      await post(host, path, body, { 'User-Agent': 'Tests' })
      expect(seen.splice(0)).toEqual([{ action, body, ip: expect.any(String), path, agent: 'Tests' }])
    }
    const ana = await signedIn(host)
    seen.length = 0
    expect((await post(host, '/email-verify/request', { captcha: 'x' }, bearerOf(ana))).status).toBe(202)
    expect(seen).toMatchObject([{ action: 'link', body: { captcha: 'x' } }])
    await post(host, '/email-verify/request', undefined, bearerOf(ana))
    expect(seen).toMatchObject([{}, { action: 'link', body: {} }])
    await post(host, '/refresh', { refresh_token: ana.refreshToken })
    await post(host, '/logout', { refresh_token: ana.refreshToken })
    expect(seen).toHaveLength(2)
  })

  test('17 refuses before a hash, a query and every limit but the route’s; an AppError as it is, anything else as 500, logged', async () => {
    const logger = logTap()
    let thrown: unknown = new errors.ForbiddenError()
    const guardRequest = async () => {
      throw thrown
    }
    const host = await start({
      settings: { tokenDelivery: 'both' },
      options: {
        guardRequest,
        logger,
        throttle: { login: { attempts: 1, windowSeconds: 60 }, routes: { attempts: 6, windowSeconds: 60 } },
      },
    })
    const body = { email: 'no address', password }
    const queries = recordQueries(host.knex)
    for (const path of Object.keys(guarded)) expect((await post(host, path, body)).body.code).toBe('FORBIDDEN')
    const taken = new errors.SignupThrottledError({ details: { retry_after_seconds: 7 } })
    thrown = taken
    const refused = await post(host, '/signup', body)
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([429, 'SIGNUP_THROTTLED', '7'])
    thrown = undefined
    const broken = await post(host, '/signup', body)
    expect([broken.status, broken.body.code]).toEqual([500, 'INTERNAL_ERROR'])
    expect(logger.entries.filter(({ level }) => level === 'error')).toHaveLength(1)
    expect(queries.stop()).toEqual([])

    thrown = new errors.ForbiddenError()
    // `/login` and its twins were asked three times above.
    const codes = []
    for (let count = 0; count < 4; count++) codes.push((await post(host, '/login', body)).body.code)
    expect(codes).toEqual(['FORBIDDEN', 'FORBIDDEN', 'FORBIDDEN', 'TOO_MANY_REQUESTS'])
  })

  test('a body that is no JSON object, or too long, is refused before the host is asked', async () => {
    let calls = 0
    const host = await start({ options: { guardRequest: () => void calls++ } })
    const sends = [
      host.browser().post('/auth/signup').type('text').send('x'),
      host.browser().post('/auth/signup').type('json').send('{'),
      post(host, '/signup', { email: 'x'.repeat(20_000) }),
    ]
    expect(await Promise.all(sends.map(async (sent) => (await sent).status))).toEqual([415, 422, 413])
    expect(calls).toBe(0)
  })

  test('a host that gives something else is told at boot', async () => {
    await expect(start({ options: { guardRequest: true as never } })).rejects.toThrow(
      'Option guardRequest must be a function of a request and { action }.',
    )
  })
})
