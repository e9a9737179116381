import type { Express } from 'express'
import supertest from 'supertest'
import { expect, test } from 'vitest'
import { loginAs } from '../../src/testing'
import { onLocal, signedIn } from '../local/people'
import { by, device } from '../server-session/devices'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

function guarded(app: Express, { guards }: Mounted['auth']): void {
  const all = {
    auth: guards.requireAuth(),
    mfa: guards.requireMfa(),
    user: guards.requireUser(),
    admin: guards.requireAdmin(),
    role: guards.requireRole('editor'),
    session: guards.requireSession(),
    live: guards.requireLiveSession(),
    fresh: guards.requireFresh(),
    csrf: guards.csrf(),
  }
  for (const [name, guard] of Object.entries(all)) app.all(`/${name}`, guard, (_req, res) => void res.json({ ok: true }))
}

const message = 'doorward: a guard refused a request. See docs/troubleshooting.md#a-401-or-403-that-you-cannot-explain'

test('15.8: why a guard refused is in the log at level info, in one stable word, and no value of the request is', async () => {
  const host = await start({ host: guarded })
  const [ana, gone, out, old] = [await signedIn(host), await signedIn(host), await signedIn(host), await signedIn(host)]
  await host.knex('auth_users').where({ id: gone.userId }).delete()
  await host.knex('auth_users').where({ id: out.userId }).update({ is_active: false })
  const left = await loginAs(host.auth, { id: ana.userId })
  await host.auth.service.logOut(left.refreshToken)
  const ended = await device(host)
  await host.auth.service.logOutSession(ended.token)
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
  const asked: [path: string, headers: Record<string, string>, reason: string | null][] = [
    ['/auth', {}, 'nobody_signed_in'],
    ['/auth', bearer('canary-1'), 'no_jwt'],
    ['/auth', bearer(`${ana.token}x`), 'signature'],
    ['/auth', bearer(`${Buffer.from('{"alg":"RS256","typ":"JWT","kid":"canary-2"}').toString('base64url')}.e30.x`), 'unknown_key'],
    ['/auth', { Authorization: 'Bearer' }, 'no_token_in_header'],
    ['/mfa', bearer(ana.token), 'mfa_required'],
    ['/user', bearer(gone.token), 'account_gone'],
    ['/user', bearer(out.token), 'account_inactive'],
    ['/admin', bearer(ana.token), 'not_admin'],
    ['/role', bearer(ana.token), 'role'],
    ['/session', {}, 'nobody_signed_in'],
    ['/session', by(ended), 'session_over'],
    ['/live', bearer(left.accessToken), 'session_over'],
    ['/auth', bearer(ana.token), null],
    ['/user', bearer(ana.token), null],
  ]
  for (const [path, headers, reason] of asked) {
    host.logs.entries.length = 0
    const { body } = await supertest(host.app).get(path).set(headers)
    const expected = reason === null ? [] : [{ level: 'info', fields: { code: body.code, reason }, message }]
    expect([path, host.logs.entries]).toEqual([path, expected])
    expect(JSON.stringify(body)).not.toContain('reason')
    expect(host.logs.text()).not.toMatch(/canary|Bearer|@/)
  }
  host.logs.entries.length = 0
  await supertest(host.app).post('/csrf').set('Cookie', 'auth_session=x')
  expect(host.logs.entries.map(({ level, fields }) => [level, fields])).toEqual([
    ['info', { code: 'CSRF_VALIDATION_FAILED', reason: 'no_cookie' }],
  ])
  host.clock.advance(901)
  host.logs.entries.length = 0
  await supertest(host.app).get('/auth').set(bearer(old.token))
  expect(host.logs.entries.map(({ fields }) => fields)).toEqual([{ code: 'TOKEN_EXPIRED', reason: 'token_expired' }])
})
