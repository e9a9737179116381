import { useUser } from 'doorward/react'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { Account } from './account'
import { auth, Guarded, readOrders, signOut } from './session'
import { Entrance } from './sign-in'

function Orders() {
  const user = useUser()
  const [orders, setOrders] = useState<readonly { what: string }[]>([])
  useEffect(() => {
    readOrders().then(setOrders)
  }, [])

  async function add(form: FormData): Promise<void> {
    const body = JSON.stringify({ what: form.get('what') })
    await auth.fetch('/api/orders', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } })
    setOrders(await readOrders())
  }

  return (
    <>
      <h1>Orders of {user?.email}</h1>
      <ul>
        {orders.map(({ what }) => (
          <li key={what}>{what}</li>
        ))}
      </ul>
      <form action={add}>
        <input name="what" aria-label="What" required />
        <button type="submit">Order</button>
      </form>
      <button type="button" onClick={signOut}>
        Sign out
      </button>
      <Account />
    </>
  )
}

createRoot(document.querySelector('#app') as HTMLElement).render(
  <Guarded fallback={<Entrance />}>
    <Orders />
  </Guarded>,
)
