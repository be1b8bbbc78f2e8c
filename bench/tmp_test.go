package bench_test
import ("testing";"os";"context";"strings";"fmt"
"github.com/toolsrv/toolsrv/runtime/sandbox")
func BenchmarkTmp(b *testing.B){
 m,err:=os.ReadFile(os.Getenv("GUEST")); if err!=nil{b.Fatal(err)}
 ctx:=context.Background(); e,_:=sandbox.New(ctx,sandbox.Config{}); defer e.Close(ctx)
 p,err:=e.Load(m); if err!=nil{b.Fatal(err)}
 t:=p.Tool("x",0,sandbox.Limits{Memory:256<<20})
 for _,n:=range []int{10,1000,65536,500000}{
 in:=[]byte(fmt.Sprintf(`{"text":%q}`,strings.Repeat("word ",n/5)))
 b.Run(fmt.Sprint(n),func(b *testing.B){ for b.Loop(){ if _,err:=t.Call(ctx,in);err!=nil{b.Fatal(err)} } })
 }
}
