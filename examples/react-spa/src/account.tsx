import type { ListedSession } from 'doorward/client'
import { useCallback, useEffect, useState } from 'react'
import { auth } from './session'
import { useTold } from './told'

/** Passkeys, the second factor and the devices of the signed-in person. */
export function Account() {
  const { told, run } = useTold()
  const [sessions, setSessions] = useState<readonly ListedSession[]>([])
  const [secret, setSecret] = useState<string | null>(null)
  const load = useCallback(() => auth.sessions.list().then(setSessions, () => {}), [])
  useEffect(() => {
    load()
  }, [load])

  return (
    <section>
      <h2>Account</h2>
      <button type="button" onClick={() => run(auth.passkeys.register(), 'The passkey is registered.')}>
        Add a passkey
      </button>
      <button type="button" onClick={() => run(auth.secondFactor.enroll().then((answer) => setSecret(answer.secret)))}>
        Set up a second factor
      </button>
      {secret && (
        <form
          action={(form) => {
            run(auth.secondFactor.confirm({ code: String(form.get('code')) }), 'The second factor is on.')
          }}
        >
          <p>
            Type this secret into your authenticator app: <code>{secret}</code>
          </p>
          <input name="code" aria-label="Code" inputMode="numeric" required />
          <button type="submit">Turn on</button>
        </form>
      )}
      <h3>Devices</h3>
      <ul>
        {sessions.map(({ id, user_agent: agent }) => (
          <li key={id}>
            {agent}{' '}
            <button type="button" onClick={() => run(auth.sessions.revoke(id).then(load))}>
              Sign out this device
            </button>
          </li>
        ))}
      </ul>
      <p role="alert">{told}</p>
    </section>
  )
}
