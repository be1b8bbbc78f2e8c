//! Calls the small guest in wasmtime, a new instance for each call, as fast as wasmtime can do it: pooling allocator,
//! copy-on-write memory, PAGEMAP_SCAN and 64 KiB of each memory kept resident, epochs as the limit on time.
//!
//!     toolsrv-bench-wasmtime MODULE MILLISECONDS
//!
//! prints the nanoseconds of one call, over as many calls as fit into the time.

use std::time::{Duration, Instant};
use wasmtime::{
    Caller, Config, Enabled, Engine, Extern, InstanceAllocationStrategy, Linker, Memory, Module, PoolingAllocationConfig,
    Result, Store,
};

const INPUT: &[u8] = br#"{"a": 2, "b": 3}"#;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(Ok(millis))) = (arguments.next(), arguments.next().map(|n| n.parse())) else {
        return Err(wasmtime::Error::msg("usage: toolsrv-bench-wasmtime MODULE MILLISECONDS"));
    };

    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(16)
        .total_memories(16)
        .total_tables(16)
        .max_memory_size(64 << 20)
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Yes);
    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .memory_init_cow(true)
        .epoch_interruption(true);
    let engine = Engine::new(&config)?;
    let module = Module::from_file(&engine, path)?;

    // A server ticks while calls run; so does this.
    let ticker = engine.clone();
    std::thread::spawn(move || loop {
        std::thread::sleep(Duration::from_millis(1));
        ticker.increment_epoch();
    });

    let mut linker: Linker<Vec<u8>> = Linker::new(&engine);
    linker.func_wrap("toolsrv_v1", "input_size", || INPUT.len() as u32)?;
    linker.func_wrap("toolsrv_v1", "input_read", |mut caller: Caller<'_, Vec<u8>>, at: u32| -> Result<()> {
        let memory = memory(&mut caller)?;
        memory.write(&mut caller, at as usize, INPUT)?;
        Ok(())
    })?;
    linker.func_wrap("toolsrv_v1", "output_write", |mut caller: Caller<'_, Vec<u8>>, at: u32, len: u32| -> Result<()> {
        let memory = memory(&mut caller)?;
        let end = at as usize + len as usize;
        let output = memory.data(&caller).get(at as usize..end).ok_or(wasmtime::Error::msg("out of bounds"))?.to_vec();
        *caller.data_mut() = output;
        Ok(())
    })?;
    let instance = linker.instantiate_pre(&module)?;

    let call = || -> Result<Vec<u8>> {
        let mut store = Store::new(&engine, Vec::new());
        store.set_epoch_deadline(5_000);
        let instance = instance.instantiate(&mut store)?;
        let call = instance.get_typed_func::<i32, i32>(&mut store, "toolsrv_call")?;
        if call.call(&mut store, 0)? != 0 {
            return Err(wasmtime::Error::msg("the guest failed"));
        }
        Ok(store.into_data())
    };
    for _ in 0..1_000 {
        if call()? != b"5" {
            return Err(wasmtime::Error::msg("the guest did not answer 5"));
        }
    }

    let limit = Duration::from_millis(millis);
    let (begin, mut calls) = (Instant::now(), 0u32);
    while begin.elapsed() < limit {
        for _ in 0..100 {
            call()?;
        }
        calls += 100;
    }
    println!("{:.1}", begin.elapsed().as_nanos() as f64 / f64::from(calls));
    Ok(())
}

fn memory(caller: &mut Caller<'_, Vec<u8>>) -> Result<Memory> {
    caller.get_export("memory").and_then(Extern::into_memory).ok_or(wasmtime::Error::msg("the guest exports no memory"))
}
