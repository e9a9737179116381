/** What the pages say, by their English. */
export const portuguese: Readonly<Record<string, string>> = {
  // The link to the other language.
  'pt-BR': 'en-US',
  Português: 'English',

  Outbox: 'Caixa de saída',
  'Open the outbox': 'Abrir a caixa de saída',
  'This page needs JavaScript to talk to the app’s API.': 'Esta página precisa de JavaScript para falar com a API do aplicativo.',

  Name: 'Nome',
  'Optional.': 'Opcional.',
  Email: 'E-mail',
  Password: 'Senha',
  'Confirm it is you': 'Confirme que é você',
  'Before anything changes about how you sign in, the app asks once more who is there.':
    'Antes de qualquer mudança na forma de entrar, o aplicativo pergunta mais uma vez quem está aí.',
  'The way you sign in cannot confirm it here. Please sign out and sign in again.':
    'O jeito como você entra não serve para confirmar aqui. Saia e entre de novo.',
  'Code of your authenticator app': 'Código do seu aplicativo autenticador',
  Confirm: 'Confirmar',
  'Not now': 'Agora não',
  'Current password': 'Senha atual',
  'New password': 'Nova senha',
  'At least 12 characters; a few words in a row are fine.': 'Pelo menos 12 caracteres; algumas palavras em sequência já servem.',
  'Show password': 'Mostrar senha',

  'Sign in': 'Entrar',
  'Sign out': 'Sair',
  'Forgotten your password?': 'Esqueceu a senha?',
  or: 'ou',
  'Continue with Acme ID': 'Continuar com Acme ID',
  'Continue with Octo ID': 'Continuar com Octo ID',
  'New here? <a href="/signup">Create an account</a>': 'Primeira vez aqui? <a href="/signup">Crie uma conta</a>',

  'Two ways in, one account': 'Dois jeitos de entrar, uma só conta',
  '<strong>With a password.</strong> You sign up, and the app mails you a link; nothing is open before you use it. No mail leaves this machine: it all lands in the <a href="/outbox">outbox</a>.':
    '<strong>Com uma senha.</strong> Você se cadastra e o aplicativo envia um link por e-mail; nada se abre antes de você usá-lo. Nenhum e-mail sai desta máquina: todos ficam na <a href="/outbox">caixa de saída</a>.',
  '<strong>With a provider.</strong> The app sends you to Acme ID, a real OpenID provider running beside it, and checks that the answer is signed and belongs to your attempt. Octo ID knows no OpenID, like GitHub: link it once you are signed in.':
    '<strong>Com um provedor.</strong> O aplicativo leva você ao Acme ID, um provedor OpenID de verdade que roda ao lado dele, e confere se a resposta está assinada e pertence à sua tentativa. O Octo ID, como o GitHub, não usa OpenID: vincule-o depois de entrar.',

  'Your account': 'Sua conta',
  Account: 'Conta',
  Opened: 'Criada em',
  'Last sign-in': 'Último acesso',

  'Linked identities': 'Identidades vinculadas',
  'None. A provider you link here is one more way into this account.':
    'Nenhuma. Um provedor vinculado aqui é mais um jeito de entrar nesta conta.',
  Unlink: 'Desvincular',

  'Your email address': 'Seu endereço de e-mail',
  'The provider you came by does not say that it is yours. Confirm it in this browser: in another one, that provider would be unlinked.':
    'O provedor pelo qual você entrou não garante que ele é seu. Confirme-o neste navegador: em outro, esse provedor seria desvinculado.',
  'Verify this address': 'Confirmar este endereço',
  'Change the address': 'Alterar o endereço',
  'New email': 'Novo e-mail',
  'A mail is on its way to <strong></strong>. Open the link in it; in this demo it is in the <a href="/outbox">outbox</a>.':
    'Um e-mail está a caminho de <strong></strong>. Abra o link que ele traz; nesta demonstração, ele está na <a href="/outbox">caixa de saída</a>.',

  'Change your password': 'Altere sua senha',
  'Change password': 'Alterar senha',
  'This account has none yet. With one you can sign in by your email address, too.':
    'Esta conta ainda não tem uma. Com uma senha, você também pode entrar pelo seu e-mail.',

  'One more step': 'Falta um passo',
  'Enter the code your authenticator app shows, or one of your recovery codes.':
    'Digite o código do seu aplicativo autenticador ou um dos seus códigos de recuperação.',
  Code: 'Código',
  'Start again': 'Começar de novo',

  'Protect your account': 'Proteja sua conta',
  'Ask for a code of your authenticator app at every sign-in. Then a stolen password opens nothing.':
    'Peça um código do seu aplicativo autenticador a cada acesso. Assim, uma senha roubada não abre nada.',
  'Set it up': 'Configurar',
  'Step 1 of 3': 'Passo 1 de 3',
  'Step 2 of 3': 'Passo 2 de 3',
  'Step 3 of 3': 'Passo 3 de 3',
  'Scan this with your authenticator app': 'Escaneie com o seu aplicativo autenticador',
  'Cannot scan it? Type this key into the app:': 'Não consegue escanear? Digite esta chave no aplicativo:',
  'Is the app on this device? Open it': 'O aplicativo está neste aparelho? Abra-o',
  Next: 'Avançar',
  Cancel: 'Cancelar',
  Back: 'Voltar',
  'Keep your recovery codes': 'Guarde seus códigos de recuperação',
  'For the day your phone is lost: each of them signs you in once. They are not shown again.':
    'Para o dia em que o celular se perder: cada um serve para entrar uma única vez. Eles não serão mostrados de novo.',
  'I have written them down': 'Já anotei os códigos',
  Copy: 'Copiar',
  'Enter the code the app shows now': 'Digite o código que o aplicativo mostra agora',
  'Six digits; a new one every 30 seconds.': 'Seis dígitos; um novo a cada 30 segundos.',
  'Turn it on': 'Ativar',
  '<strong>It is on.</strong> Every sign-in asks for a code of your authenticator app.':
    '<strong>A proteção está ativada.</strong> Cada acesso pede um código do seu aplicativo autenticador.',
  'New recovery codes': 'Novos códigos de recuperação',
  'The old ones are worth nothing after that.': 'Depois disso, os antigos não valem mais.',
  'Of your authenticator app, or a recovery code.': 'Do seu aplicativo autenticador, ou um código de recuperação.',
  'Show new codes': 'Mostrar novos códigos',
  'Turn it off': 'Desativar',
  'Turn the protection off': 'Desativar a proteção',

  'The app’s own API': 'A API do próprio aplicativo',
  'A route of the host app behind <code>requireAuth()</code>, called just now with what your browser holds.':
    'Uma rota do aplicativo protegida por <code>requireAuth()</code>, chamada agora mesmo com o que o seu navegador tem.',

  'How this app keeps you signed in': 'Como este aplicativo mantém você conectado',
  'The setting is <code>tokenDelivery</code>. Choosing another one signs you out here.':
    'A configuração é <code>tokenDelivery</code>. Ao escolher outra, você sai daqui.',

  'Create an account': 'Crie uma conta',
  'Create account': 'Criar conta',
  'Any address will do: no mail leaves this machine.': 'Qualquer endereço serve: nenhum e-mail sai desta máquina.',
  'Have one already? <a href="/">Sign in</a>': 'Já tem uma conta? <a href="/">Entre</a>',
  'Check your mail': 'Confira seu e-mail',
  'We sent a mail to <strong id="address"></strong>. Open the link in it to activate your account. In this demo the mail is in the <a href="/outbox">outbox</a>.':
    'Enviamos um e-mail para <strong id="address"></strong>. Abra o link que ele traz para ativar a sua conta. Nesta demonstração, o e-mail está na <a href="/outbox">caixa de saída</a>.',
  'Send it again': 'Enviar de novo',

  'Activate your account': 'Ative sua conta',
  'One click, and you are signed in. Opening this page has changed nothing.':
    'Um clique, e você já entra. Abrir esta página não alterou nada.',
  'Activate and sign in': 'Ativar e entrar',
  'Not activated yet?': 'Ainda não ativou?',
  'Ask for a new link.': 'Peça um novo link.',
  'Send a new link': 'Enviar um novo link',
  'Activated already? <a href="/">Sign in</a>': 'Já ativou? <a href="/">Entre</a>',

  'Forgotten password': 'Senha esquecida',
  'We mail you a link to choose a new one.': 'Enviamos um link por e-mail para você escolher uma nova.',
  'Send the link': 'Enviar o link',
  'Remembered it? <a href="/">Sign in</a>': 'Lembrou? <a href="/">Entre</a>',
  'If <strong id="address"></strong> has an account here, a mail with a link is on its way. In this demo it is in the <a href="/outbox">outbox</a>.':
    'Se <strong id="address"></strong> tiver uma conta aqui, um e-mail com um link está a caminho. Nesta demonstração, ele está na <a href="/outbox">caixa de saída</a>.',

  'Your devices': 'Seus aparelhos',
  'Signed in as <strong id="devices-email"></strong>. Something here that is not yours? Sign it out, and change your password.':
    'Você entrou como <strong id="devices-email"></strong>. Há algo aqui que não é seu? Desconecte-o e altere sua senha.',
  'Sign it out': 'Desconectar',

  'Choose a new password': 'Escolha uma nova senha',
  'You are signed in with it at once, and signed out of every other browser.':
    'Você já entra com ela, e a sessão é encerrada em todos os outros navegadores.',
  'Save and sign in': 'Salvar e entrar',
  'Ask for a new link': 'Pedir um novo link',
}
