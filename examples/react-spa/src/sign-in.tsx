import type { ClientConfig, SignUpResult } from 'doorward/client'
import { useEffect, useState } from 'react'
import { auth, SignIn } from './session'
import { useTold } from './told'

/** Every way in: password, sign-up, passkey, provider, and the second step. */
export function Entrance() {
  const { told, tell, run } = useTold()
  const [needsCode, setNeedsCode] = useState(false)
  const [config, setConfig] = useState<ClientConfig | null>(null)
  useEffect(() => {
    fetch('/auth/client-config').then(async (answer) => setConfig(await answer.json()))
  }, [])

  function enter(login: Promise<SignUpResult>): void {
    run(login)
    login.then(
      (result) => {
        setNeedsCode(result.kind === 'second_factor')
        if (result.kind === 'activation_required') tell('Open the link in the mail to finish.')
      },
      () => {}, // told already
    )
  }

  if (needsCode) return <SecondStep enter={enter} told={told} />
  return (
    <>
      <h1>Sign in</h1>
      <SignIn enter={enter} />
      {config?.features.passkeys && (
        <button type="button" onClick={() => enter(auth.passkeys.logIn())}>
          Sign in with a passkey
        </button>
      )}
      {config?.providers.map(({ key, name }) => (
        <button type="button" key={key} onClick={() => auth.providers.logIn(key)}>
          Sign in with {name}
        </button>
      ))}
      {config?.features.signup && <SignUp enter={enter} minLength={config.password?.min_length ?? 0} />}
      <p role="alert">{told}</p>
    </>
  )
}

type Enter = (login: Promise<SignUpResult>) => void

function SignUp({ enter, minLength }: { enter: Enter; minLength: number }) {
  return (
    <form action={(form) => enter(auth.signUp({ email: String(form.get('email')), password: String(form.get('password')) }))}>
      <h2>New here?</h2>
      <input name="email" aria-label="Your email" type="email" autoComplete="username" required />
      <input name="password" aria-label="New password" type="password" minLength={minLength} autoComplete="new-password" required />
      <button type="submit">Sign up</button>
    </form>
  )
}

function SecondStep({ enter, told }: { enter: Enter; told: string }) {
  return (
    <form action={(form) => enter(auth.secondFactor.verify({ code: String(form.get('code')) }))}>
      <h1>Second step</h1>
      <input name="code" aria-label="Code" inputMode="numeric" autoComplete="one-time-code" required />
      <button type="submit">Continue</button>
      <button type="button" onClick={() => enter(auth.secondFactor.verify({ passkey: true }))}>
        Use a passkey
      </button>
      <p role="alert">{told}</p>
    </form>
  )
}
