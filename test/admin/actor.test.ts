import { expect, test } from 'vitest'
import { newPasswordTask } from '../../src'
import { type AuthEventName, eventFields } from '../../src/core/events'
import { putOnList } from '../approval/people'
import { bearerOf, type LocalHost, post } from '../local/people'
import { enrolled } from '../mfa/people'
import { newAuthenticator } from '../passkeys/people'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { onTrust, trusting } from '../trusted-devices/people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onTrust(sqlite)

const everything = {
  settings: { tokenDelivery: 'both', signupMode: 'approve' },
  options: { loginTasks: [newPasswordTask()] },
} as const

/** With all that an administrator can take away. */
async function holder(host: LocalHost): Promise<{ userId: string; email: string }> {
  const person = await trusting(host, { base: '/cookie' })
  const { options, challenge } = await host.auth.service.passkeyRegistrationOptions({ userId: person.userId })
  await host.auth.service.registerPasskey({ userId: person.userId, credential: newAuthenticator().create(options), challenge })
  return person
}

interface Action {
  /** The events it causes. */
  readonly causes: readonly AuthEventName[]
  readonly body?: object
  readonly waits?: true
  readonly byHost: (host: LocalHost, userId: string) => Promise<unknown>
}

const actions: Readonly<Record<string, Action>> = {
  deactivate: {
    causes: ['device.untrusted', 'account.deactivated'],
    byHost: (host, userId) => host.auth.service.deactivate(userId),
  },
  activate: {
    waits: true,
    causes: ['device.untrusted', 'activation', 'approval.granted'],
    byHost: (host, userId) => host.auth.service.activateUser(userId),
  },
  approve: {
    waits: true,
    causes: ['activation', 'approval.granted'],
    byHost: (host, userId) => host.auth.service.approve(userId),
  },
  decline: {
    waits: true,
    causes: ['approval.declined'],
    byHost: (host, userId) => host.auth.service.decline(userId),
  },
  'revoke-sessions': {
    causes: ['device.untrusted', 'session.revoked'],
    byHost: (host, userId) => host.auth.service.revokeSessions(userId),
  },
  'reset-mfa': {
    body: { passkeys: true },
    causes: ['device.untrusted', 'mfa.disabled', 'passkey.removed'],
    byHost: (host, userId) => host.auth.service.resetMfa(userId, undefined, { passkeys: true }),
  },
  'expire-password': {
    causes: ['device.untrusted', 'password.expired'],
    byHost: (host, userId) => host.auth.service.expirePassword(userId),
  },
}

test('the list has every action of an administrator', async () => {
  mountedRoutes.length = 0
  await start(everything)
  const begin = '/admin/users/:id/'
  const mounted = mountedRoutes
    .flat()
    .flatMap(({ method, path }) => (method === 'POST' && path.startsWith(begin) ? [path.slice(begin.length)] : []))
  expect(Object.keys(actions).sort()).toEqual(mounted.sort())
})

test.each(Object.entries(actions))('rule 3: the events of %s name the administrator, and nobody if the host acts', async (name, action) => {
  const host = await start(everything)
  const admin = await enrolled(host, { isAdmin: true })
  const people = [await holder(host), await holder(host)] as const
  if (action.waits) for (const person of people) await putOnList(host, person)
  const heard: [name: string, payload: object][] = []
  for (const event of Object.keys(eventFields) as AuthEventName[]) host.auth.events.on(event, (payload) => heard.push([event, payload]))

  expect((await post(host, `/admin/users/${people[0].userId}/${name}`, action.body ?? {}, bearerOf(admin))).status).toBe(204)
  await host.auth.drain()
  expect(heard.map(([event]) => event)).toEqual(action.causes)
  expect(heard.map(([, payload]) => payload)).toEqual(
    heard.map(() => expect.objectContaining({ userId: people[0].userId, actorId: admin.userId })),
  )

  heard.length = 0
  await action.byHost(host, people[1].userId)
  await host.auth.drain()
  expect(heard.map(([event]) => event)).toEqual(action.causes)
  const named = heard.filter(([, payload]) => 'actorId' in payload)
  expect(named).toEqual(
    action.causes.includes('password.expired') ? [['password.expired', { userId: people[1].userId, actorId: null }]] : [],
  )
})
