import { afterEach, describe, expect, test, vi } from 'vitest'
import { createAdminClient } from '../../src/client/admin'
import { adminOn } from '../admin/people'
import { everyWay, invite, onInvitations, usesOf } from '../invitations/people'
import { newAddress, password } from '../local/people'
import { member } from '../server-session/devices'
import { newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { visitors } from './visitor'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onInvitations(sqlite)
const visit = visitors()
afterEach(() => vi.unstubAllGlobals())

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('the client and invitations, in delivery %s', (tokenDelivery) => {
  const open = async () => {
    const host = await start({ settings: { ...everyWay, tokenDelivery, signupMode: 'invite' } })
    return { host, visitor: await visit(host, { delivery: tokenDelivery }) }
  }

  test('signUp, a login by email and a token of a provider each carry the token that they are given', async () => {
    const { host, visitor } = await open()
    const { auth } = visitor
    const carried = async () => ({ invitation: String((await invite(host)).token) })
    await expect(auth.signUp({ email: newAddress(), password })).rejects.toMatchObject({ code: 'INVITATION_REQUIRED' })
    expect(await auth.signUp({ email: newAddress(), password, ...(await carried()) })).toEqual({ kind: 'activation_required' })

    const email = newAddress()
    await auth.emailLogin.request({ email, ...(await carried()) })
    const { code = '' } = await host.mails.next({ kind: 'email_login', to: email })
    expect(await auth.emailLogin.confirm({ code })).toMatchObject({ kind: 'session', user: { email } })

    const token = () => ({ access_token: host.provider.issueAccessToken({ profile: newPerson({ email: newAddress() }) }) })
    await expect(auth.providers.logInWithToken('corp', token())).rejects.toMatchObject({ code: 'INVITATION_REQUIRED' })
    expect(await auth.providers.logInWithToken('corp', { ...token(), ...(await carried()) })).toMatchObject({ kind: 'session' })
  })

  test('providers.logIn takes it to the provider’s login', async () => {
    const { visitor } = await open()
    const assign = vi.fn()
    vi.stubGlobal('location', { assign })
    visitor.auth.providers.logIn('corp', { returnTo: '/home', invitation: 'the token' })
    expect(assign.mock.calls).toEqual([[expect.stringMatching(/\/oauth\/corp\/login\?return_to=%2Fhome&invitation=the\+token$/)]])
  })

  test('invitations.redeem uses it with the account that is signed in', async () => {
    const { host, visitor } = await open()
    const [invitation, person] = [await invite(host), await member(host)]
    await visitor.auth.logIn({ email: person.email, password })
    await visitor.auth.invitations.redeem({ token: String(invitation.token) })
    expect(await usesOf(host, invitation)).toEqual({ left: 0, users: [person.userId] })
  })

  test('an administrator creates, lists, sends again and revokes', async () => {
    const { host, visitor } = await open()
    const { email } = await adminOn(host)
    await visitor.auth.logIn({ email, password })
    const { invitations } = createAdminClient(visitor.auth)
    const shown = await invitations.create({ data: { team: 'a' }, uses: 3 })
    const mailed = await invitations.create({ email: newAddress() })
    expect([typeof shown.token, mailed.token, shown.data]).toEqual(['string', null, { team: 'a' }])
    expect((await invitations.list({ limit: 100 })).items.map(({ id }) => id)).toEqual(expect.arrayContaining([shown.id, mailed.id]))
    await invitations.resend(mailed.id)
    await invitations.revoke(shown.id)
    await expect(invitations.resend(shown.id)).rejects.toMatchObject({ code: 'CONFLICT' })
  })
})
