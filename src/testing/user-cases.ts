import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DuplicateRecordError } from '../store/auth-store'
import type { Cases } from './cases'
import {
  AT,
  deleteLongAgo,
  EMPTY_USER,
  FULL_USER,
  LONG_AGO,
  later,
  NOBODY,
  newEmailLogin,
  newIdentity,
  newInvitation,
  newUser,
  STRANGE_IDS,
  withUser,
  withUserToken,
} from './records'

export const USER_CASES: Cases = [
  [
    'a user comes back as it was inserted, under an id of 1 to 64 characters, instants exact to the millisecond',
    async ({ users }) => {
      const user = newUser({ lastLoginAt: later(1), totpSecret: 's', totpEnabledAt: later(2), totpLastStep: 58_000_000, isAdmin: true })
      const inserted = await users.insert(user)
      assert.match(inserted.id, /^.{1,64}$/)
      assert.deepEqual(inserted, { ...user, id: inserted.id })
      assert.deepEqual(await users.find(inserted.id), inserted)
      assert.deepEqual(await users.findByEmail(user.email), inserted)
    },
  ],
  [
    'every verb that answers with a user answers with all of its fields, whether they are empty or not',
    async (store) => {
      const { users } = store
      for (const fields of [FULL_USER, EMPTY_USER]) {
        const given = newUser({ ...fields, isAdmin: true })
        const user = await users.insert(given)
        const { id, email } = user
        assert.deepEqual(user, { ...given, id })
        assert.deepEqual(await users.find(id), user)
        assert.deepEqual(await users.findByEmail(email), user)
        assert.deepEqual(await users.list({ filters: [{ field: 'id', operator: 'eq', value: id }], after: null, limit: 1 }), {
          users: [user],
          next: null,
        })
        const [locked, admins] = await store.transaction(async (inside) => [await inside.users.lock(id), await inside.users.lockAdmins()])
        assert.deepEqual(locked, user)
        assert.ok(admins.some((admin) => isDeepStrictEqual(admin, user)))
        const stamped = { ...user, lastLoginAt: later(8) }
        assert.deepEqual(await users.recordLogin(user, later(8)), stamped)
        assert.deepEqual(await users.find(id), stamped)
        await users.update(id, { isAdmin: false })
      }
    },
  ],
  [
    'instants before 1970, in a skipped hour of summer time and far ahead survive',
    async ({ users }) => {
      for (const at of [new Date('1969-12-31T23:59:59.001Z'), new Date('2026-03-29T02:30:00.123Z'), new Date('2199-12-31T23:59:59.999Z')]) {
        const { id } = await withUser({ users }, { createdAt: at, lastLoginAt: at })
        const found = await users.find(id)
        assert.deepEqual([found?.createdAt, found?.lastLoginAt], [at, at])
      }
    },
  ],
  [
    'an unknown or malformed id is not found, and changes nothing',
    async ({ users, userTokens }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await users.find(id), null)
        assert.equal(await users.lock(id), null)
        assert.equal(await users.update(id, { name: 'x' }), false)
        assert.equal(await users.advanceTotpStep(id, 1), false)
        assert.equal(await userTokens.consumeAllForUser(id, AT), 0)
        assert.equal(await userTokens.wasConsumed(id, 'ACTIVATION'), false)
      }
    },
  ],
  [
    'an id in other letters is another id',
    async ({ users }) => {
      const { id } = await withUser({ users })
      const others = [id.toUpperCase(), id.toLowerCase(), `{${id}}`, id.replaceAll('-', ''), `${id} `, ` ${id}`, `0${id}`]
      for (const other of others.filter((other) => other !== id)) assert.equal(await users.find(other), null, other)
    },
  ],
  [
    'an email is found byte for byte only',
    async ({ users }) => {
      const local = randomUUID()
      await withUser({ users }, { email: `jose${local}@example.test` })
      for (const email of [
        `Jose${local}@example.test`,
        `josé${local}@example.test`,
        `jose${local}@example.test `,
        `jose${local}@example.test\0`,
      ]) {
        assert.equal(await users.findByEmail(email), null)
      }
      assert.equal(await users.findByEmail(`jose${local}@example.te_t`), null)
      assert.equal(await users.findByEmail('%'), null)
      assert.equal(await users.findByEmail('x'.repeat(5000)), null)
    },
  ],
  [
    'a taken address is a DuplicateRecordError at insert and at update',
    async ({ users }) => {
      const first = await withUser({ users })
      const second = await withUser({ users })
      await assert.rejects(users.insert(newUser({ email: first.email })), DuplicateRecordError)
      await assert.rejects(users.update(second.id, { email: first.email }), DuplicateRecordError)
      assert.equal((await users.find(second.id))?.email, second.email)
    },
  ],
  [
    'update changes the given fields only and says whether the row was there',
    async ({ users }) => {
      const user = await withUser({ users }, { totpLastStep: 5 })
      assert.equal(await users.update(user.id, { name: null, isActive: false, updatedAt: later(5), totpLastStep: null }), true)
      assert.deepEqual(await users.find(user.id), { ...user, name: null, isActive: false, updatedAt: later(5), totpLastStep: null })
      assert.equal(await users.update(user.id, { isActive: false }), true) // an update without a change still finds the row
      assert.equal(await users.update(user.id, {}), true)
      assert.equal(await users.update(NOBODY, {}), false)
    },
  ],
  [
    'update changes each field by itself, to a value and to nothing, of an active and of an inactive account',
    async ({ users }) => {
      for (const [before, after, isActive] of [
        [FULL_USER, EMPTY_USER, true],
        [EMPTY_USER, FULL_USER, true],
        [FULL_USER, EMPTY_USER, false],
        [EMPTY_USER, FULL_USER, false],
      ] as const) {
        let user = await withUser({ users }, { ...before, isActive })
        const { createdAt: _, ...changes } = { ...after, email: newUser().email, isActive: !isActive }
        for (const [field, value] of Object.entries(changes)) {
          assert.equal(await users.update(user.id, { [field]: value }), true)
          user = { ...user, [field]: value }
          assert.deepEqual(await users.find(user.id), user)
        }
        await users.update(user.id, { isAdmin: false })
      }
    },
  ],
  [
    'a text with NUL or half a surrogate pair is a ValidationError or kept as it is, and does no harm',
    async ({ users }) => {
      const user = await withUser({ users })
      for (const name of ['a\0b', 'a\ud800b', '\udc00']) {
        const kept = await users.insert(newUser({ name })).catch(refusal)
        if (kept) assert.equal((await users.find(kept.id))?.name, name)
        const changed = await users.update(user.id, { name }).catch(refusal)
        assert.equal((await users.find(user.id))?.name, changed ? name : user.name)
        await users.update(user.id, { name: user.name })
      }
      assert.equal(await users.update(user.id, { name: '😀 \u202e ok' }), true)
      assert.equal((await users.find(user.id))?.name, '😀 \u202e ok')
    },
  ],
  [
    'lock reads the row as it is',
    async (store) => {
      const user = await withUser(store)
      assert.deepEqual(await store.transaction((inside) => inside.users.lock(user.id)), user)
      assert.equal(await store.transaction((inside) => inside.users.lock(NOBODY)), null)
    },
  ],
  [
    'a locked row waits for nobody and is changed by nobody until the unit ends',
    async (store) => {
      const { id } = await withUser(store, { totpLastStep: 0 })
      const increment = () =>
        store.transaction(async (inside) => {
          const user = await inside.users.lock(id)
          await inside.users.update(id, { totpLastStep: (user?.totpLastStep ?? 0) + 1 })
        })
      await Promise.all(Array.from({ length: 8 }, increment))
      assert.equal((await store.users.find(id))?.totpLastStep, 8)
    },
  ],
  [
    'a TOTP step is accepted once and never goes back, also when ten callers bring it at once',
    async ({ users }) => {
      const { id } = await withUser({ users })
      const answers = await Promise.all(Array.from({ length: 10 }, () => users.advanceTotpStep(id, 100)))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await users.advanceTotpStep(id, 99), false)
      assert.equal(await users.advanceTotpStep(id, 101), true)
      assert.equal(await users.advanceTotpStep(id, Number.NaN), false)
      assert.equal(await users.advanceTotpStep(id, 102.5), false)
      assert.equal((await users.find(id))?.totpLastStep, 101)
    },
  ],
  [
    'a TOTP step that is accepted changes nothing else',
    async ({ users }) => {
      for (const fields of [FULL_USER, { ...EMPTY_USER, isActive: false }]) {
        const user = await withUser({ users }, { ...fields, isAdmin: false })
        assert.equal(await users.advanceTotpStep(user.id, 60_000_000), true)
        assert.deepEqual(await users.find(user.id), { ...user, totpLastStep: 60_000_000 })
      }
    },
  ],
  [
    'the fields of the table are known',
    async ({ users }) => {
      for (const field of ['id', 'email', 'name', 'totpLastStep', 'passwordSetAt'] as const) assert.ok(users.fields.has(field), field)
    },
  ],
  [
    'deleteAbandoned takes pending accounts whose last activation link expired, with what belongs to them',
    async (store) => {
      const { deleteAbandoned } = store.users
      if (!deleteAbandoned || !store.users.fields.has('activatedAt')) return
      await deleteLongAgo(store)
      const pending = { isActive: false, activatedAt: null, lastLoginAt: null }
      const [gone, waiting, active] = [await withUser(store, pending), await withUser(store, pending), await withUser(store)]
      const imported = await withUser(store, pending)
      const link = (id: string, expiresAt: Date) => withUserToken(store, id, { purpose: 'ACTIVATION', expiresAt })
      for (const { id } of [gone, waiting, active, imported]) await link(id, LONG_AGO)
      await link(waiting.id, later(1, LONG_AGO))
      await withUserToken(store, imported.id, { purpose: 'ACTIVATION', expiresAt: later(1, LONG_AGO), usedAt: LONG_AGO })
      await store.identities?.insert(newIdentity(gone.id))
      assert.deepEqual(await deleteAbandoned({ before: LONG_AGO, most: 10 }), { deleted: 1, held: 0 })
      assert.equal(await store.users.find(gone.id), null)
      assert.deepEqual(await store.identities?.listForUser(gone.id), [])
      for (const { id } of [waiting, active, imported]) assert.ok(await store.users.find(id))
      for (let more = 0; more < 2; more += 1) await link((await withUser(store, pending)).id, LONG_AGO)
      for (const deleted of [1, 1, 0]) assert.deepEqual(await deleteAbandoned({ before: LONG_AGO, most: 1 }), { deleted, held: 0 })
    },
  ],
  [
    'delete takes an account with what belongs to it, and nothing of others: email logins, invitations and their administrator too',
    async (store) => {
      const { users } = store
      if (!users.delete) return
      const [gone, stays] = [await withUser(store), await withUser(store)]
      for (const { id } of [gone, stays]) await store.identities?.insert(newIdentity(id))
      const link = await withUserToken(store, gone.id, {})
      const logins = [{ email: gone.email }, { tokenHash: link.tokenHash }, { email: stays.email }].map((own) => newEmailLogin(own))
      for (const login of logins) await store.emailLogins?.insert(login)
      const invited = await store.invitations?.insert(newInvitation({ email: gone.email }))
      const made = await store.invitations?.insert(newInvitation({ email: stays.email, createdBy: gone.id }))
      const [uses, invitationId] = [store.invitationUses, made?.id ?? NOBODY]
      for (const { id: userId } of [gone, stays]) await uses?.insert({ invitationId, userId, createdAt: AT })

      const deletion = { addresses: [gone.email], invited: [gone.email], at: later(5) }
      assert.equal(await users.delete({ ...deletion, id: gone.id }), true)
      assert.equal(await users.delete({ ...deletion, id: gone.id }), false)
      assert.equal(await users.find(gone.id), null)
      assert.deepEqual(await store.identities?.listForUser(gone.id), store.identities && [])
      assert.equal(await store.userTokens.find(link.tokenHash), null)
      const left = await Promise.all(logins.map(({ id }) => store.emailLogins?.find({ id })))
      assert.deepEqual(left, store.emailLogins ? [null, null, logins[2]] : [undefined, undefined, undefined])
      if (invited && made) {
        assert.deepEqual(await store.invitations?.find({ id: invited.id }), { ...invited, email: null, revokedAt: later(5) })
        assert.deepEqual(await store.invitations?.find({ id: made.id }), { ...made, createdBy: null })
      }
      assert.notEqual(await uses?.isUsedBy(invitationId, gone.id), true)
      assert.notEqual(await uses?.isUsedBy(invitationId, stays.id), false)
      assert.deepEqual(await users.find(stays.id), stays)
      for (const id of [NOBODY, ...STRANGE_IDS]) assert.equal(await users.delete({ ...deletion, id }), false)
    },
  ],
  [
    'listDeletions and delete take only inactive accounts that asked early enough, the longest waiting first',
    async (store) => {
      const { users } = store
      if (!users.delete || !users.listDeletions || !users.fields.has('deletionRequestedAt')) return
      const due = { isActive: false, deletionRequestedAt: LONG_AGO }
      const [second, first] = [await withUser(store, { ...due, deletionRequestedAt: later(1, LONG_AGO) }), await withUser(store, due)]
      const back = await withUser(store, { deletionRequestedAt: LONG_AGO })
      const young = await withUser(store, { ...due, deletionRequestedAt: later(2, LONG_AGO) })
      const by = later(1, LONG_AGO)
      const own = [first, second, back, young].map(({ id }) => id)
      const all = (await users.listDeletions({ by, after: null, most: 1_000 })).filter(({ id }) => own.includes(id))
      assert.deepEqual(all, [first, second])
      const rest = await users.listDeletions({ by, after: first, most: 1_000 })
      assert.deepEqual(
        rest.filter(({ id }) => own.includes(id)),
        [second],
      )
      const deletion = { addresses: [], invited: [], at: AT, requestedBy: by }
      for (const { id } of [back, young]) assert.equal(await users.delete({ ...deletion, id }), false)
      for (const { id } of [first, second]) assert.equal(await users.delete({ ...deletion, id }), true)
      assert.deepEqual([await users.find(back.id), await users.find(young.id)], [back, young])
      await users.delete({ ...deletion, id: young.id, requestedBy: AT })
    },
  ],
]

function refusal(error: unknown): null {
  assert.equal((error as { code?: unknown } | null)?.code, 'VALIDATION_ERROR') // no other error is allowed
  return null
}
